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
