//===- JsonTest.cpp - JSON in which nothing is dropped --------------------===//
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Error.h"
#include <gtest/gtest.h>

using namespace fsdp;

/// What is said about `text`; empty if it is taken.
static std::string problemOf(const std::string &text) {
  try {
    parseJson(text, "plan");
  } catch (const Error &error) {
    EXPECT_TRUE(parseJsonOrNull(text).is_null());
    return error.what();
  }
  return "";
}

TEST(Json, GoodTextIsTaken) {
  // Equal keys of different objects, and brackets in strings.
  EXPECT_EQ(problemOf(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": "{[,\"a\""}]})"),
            "");
  EXPECT_EQ(problemOf("[1e308, -0.5, 12345678901234567890]"), "");
}

TEST(Json, KeysGivenTwiceNameThePlace) {
  EXPECT_EQ(problemOf("{\"a\": 1,\n \"a\": 2}"),
            "plan: line 2, column 4: 'a' appears twice");
  EXPECT_EQ(problemOf(R"({"units": [{}, {"n": {"x": 1}, "m": 2, "n": 3}]})"),
            "plan: line 1, column 42: units[1]: 'n' appears twice");
  EXPECT_EQ(problemOf("[[7, {}],\n[{\"b\": [{}, {\"n\": 1, \"n\": 1}]}]]"),
            "plan: line 2, column 24: [1][0]: b[1]: 'n' appears twice");
  // The same key, spelled in two ways.
  EXPECT_EQ(problemOf(R"({"a": 1, "\u0061": 2})"),
            "plan: line 1, column 17: 'a' appears twice");
}

TEST(Json, NumbersAreFinite) {
  EXPECT_EQ(problemOf("{\"a\":\n[0, -1e999\n]}"),
            "plan: line 2, column 11: a[1]: -1e999 is not a finite number");
  EXPECT_EQ(problemOf("{\"b\": 0, \"a\": 1e" + std::string(100, '9') + "}"),
            "plan: line 1, column 117: a: 1e" + std::string(30, '9') +
                "… is not a finite number");
}

TEST(Json, NestingIsBounded) {
  auto nested = [](int depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  std::string deep = "plan: line 1, column 65: nested deeper than 64 levels";
  EXPECT_EQ(problemOf(nested(64)), "");
  EXPECT_EQ(problemOf(nested(65)), deep);
  EXPECT_EQ(problemOf(nested(300000)), deep);
  EXPECT_EQ(problemOf(std::string(300000, '[')), deep);
}

TEST(Json, WhatIsNoJsonHasALineAndAReason) {
  auto refused = [](const std::string &text, const std::string &where) {
    std::string problem = problemOf(text);
    std::string start = "plan: " + where + ": this is not JSON: ";
    EXPECT_EQ(problem.substr(0, start.size()), start) << text;
    EXPECT_LT(problem.size(), 200u);
  };
  refused("", "line 1, column 1");
  refused("{\n\"a\": 1", "line 2, column 6");
  refused("{\"a\" 1}", "line 1, column 7");
  refused("{} {}", "line 1, column 4");
  refused("\"" + std::string(10000, 'x'), "line 1, column 10001");
  // Bytes that are no UTF-8, a control character, and text that a zero hides.
  refused("{\"\xff\": 1}", "line 1, column 3");
  refused("[\"\x1b\"]", "line 1, column 3");
  refused(std::string("[]\0\n[]", 6), "line 1, column 3");
  EXPECT_EQ(problemOf(std::string("[]\0\0", 4)), "");
}

TEST(Json, APlaceMayBeLeftToTheCaller) {
  try {
    parseJson("[", "");
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 8), "line 1, ");
  }
}
