//===- NestingTest.cpp - Texts that are too deep to parse -----------------===//
#include "fsdp/Input/Nesting.h"
#include <gtest/gtest.h>

using namespace fsdp;

/// What checkNesting says about `text`; empty if nothing.
static std::string problemOf(const std::string &text) {
  return llvm::toString(checkNesting({text, "a.mlir"}));
}

static std::string repeat(const std::string &piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i)
    text += piece;
  return text;
}

TEST(Nesting, NamesThePlace) {
  EXPECT_EQ(problemOf(repeat("(", kMaxNesting) + repeat(")", kMaxNesting)), "");
  EXPECT_EQ(problemOf("module {}\n" + repeat("(", 300)),
            "a.mlir:2:257: more than 256 brackets or signs are inside one "
            "another");
}

// Messages show lines of the text, which would move a terminal's cursor.
TEST(Nesting, TextWithControlCharactersIsRefused) {
  auto problem = [](const std::string &text) {
    return llvm::toString(checkText({text, "a.mlir"}));
  };
  EXPECT_EQ(problem("module {\t}\r\n// \xc3\xa9 \xff"), "");
  EXPECT_EQ(problem("module {}\n// \x1b[2J"),
            "a.mlir:2:4: the control character \\x1b in what should be text; a "
            "string has it as an escape (\\1B)");
  for (std::string control : {"\x7f", "\xc2\x9b", "\x08"})
    EXPECT_NE(problem(control), "");
  EXPECT_NE(problem(std::string(1, '\0')), "");
  EXPECT_NE(problem(repeat("(", 300)), "");
}

TEST(Nesting, EveryKindOfBracket) {
  for (const char *open : {"(", "[", "{", "<", "module {\n", "- ", "-",
                           "tensor<", "loc(callsite(", "-(", "\"a\"("})
    EXPECT_NE(problemOf(repeat(open, 300000)), "") << open;
}

// What looks like a bracket and is none.
TEST(Nesting, StringsCommentsAndArrows) {
  for (const char *piece :
       {"\"(\" ", "\"\\\"(\" ", "// ((\n", "() -> () ", "d0 <= 1, ", "d0 - 1, ",
        "d0 >= 1, (d0 <= 2), ", "<4xf32> "})
    EXPECT_EQ(problemOf(repeat(piece, 1000)), "") << piece;
  // An arrow closes nothing.
  EXPECT_NE(problemOf(repeat("(-> >= ", 300)), "");
}
