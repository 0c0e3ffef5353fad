//===- StrictJsonTest.cpp - JSON in which nothing is dropped --------------===//
#include "fsdp/Input/StrictJson.h"
#include "llvm/Support/Error.h"
#include <gtest/gtest.h>

using namespace fsdp;

/// What is said about `text`; empty if it is taken.
static std::string problemOf(const std::string &text) {
  llvm::Expected<llvm::json::Value> value = parseStrictJson(text, "plan");
  return value ? "" : llvm::toString(value.takeError());
}

TEST(StrictJson, GoodTextIsTaken) {
  // Equal keys of different objects, and brackets in strings.
  EXPECT_EQ(problemOf(R"({"a": {"a": 1}, "b": [{"a": 1}, {"a": "{[,\"a\""}]})"),
            "");
  EXPECT_EQ(problemOf("[1e308, -0.5, 12345678901234567890]"), "");
}

TEST(StrictJson, KeysGivenTwiceNameThePlace) {
  EXPECT_EQ(problemOf("{\"a\": 1,\n \"a\": 2}"),
            "line 2: the key is given twice at plan.a");
  EXPECT_EQ(problemOf(R"({"units": [{}, {"n": {"x": 1}, "m": 2, "n": 3}]})"),
            "line 1: the key is given twice at plan.units[1].n");
  // The same key, spelled in two ways.
  EXPECT_EQ(problemOf(R"({"a": 1, "\u0061": 2})"),
            "line 1: the key is given twice at plan.a");
}

TEST(StrictJson, NumbersAreFinite) {
  EXPECT_EQ(problemOf("{\"a\":\n[0, -1e999]}"),
            "line 2: -1e999 is not a finite number at plan.a[1]");
}

TEST(StrictJson, NestingIsBounded) {
  auto nested = [](int depth) {
    return std::string(depth, '[') + std::string(depth, ']');
  };
  EXPECT_EQ(problemOf(nested(64)), "");
  EXPECT_EQ(problemOf(nested(65)), "line 1: nested deeper than 64 levels");
  EXPECT_EQ(problemOf(nested(300000)), "line 1: nested deeper than 64 levels");
}

TEST(StrictJson, WhatIsNoJsonIsSaidByTheParser) {
  EXPECT_EQ(problemOf("{\"a\": 1, \"a\": 2"),
            "[1:15, byte=15]: Expected , or } after object property");
}
