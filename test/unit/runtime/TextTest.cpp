//===- TextTest.cpp - Making and checking text ----------------------------===//
#include "fsdp/Support/Text.h"
#include <gtest/gtest.h>

using namespace fsdp;

TEST(Text, FormatHasNoLimit) {
  std::string name(2000, 'x');
  EXPECT_EQ(format("<%s> %d", name.c_str(), 7), "<" + name + "> 7");
  EXPECT_EQ(format("%s", ""), "");
}

TEST(Text, APlainLineIsUtf8) {
  for (const char *good :
       {"", "a run", "äöü €", "\xf0\x9f\x98\x80", "\xef\xbf\xbd"})
    EXPECT_TRUE(isPlainLine(good)) << good;
  for (const char *bad :
       {"\xff", "a\x80", "\xc3", "\xc3(", "\xe2\x82", "\xf8\x88\x80\x80\x80",
        // In more bytes than needed; a surrogate; beyond Unicode.
        "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80",
        // No characters of XML.
        "\xef\xbf\xbe", "\xef\xbf\xbf", "\x01", "\x7f", "\xc2\x85", "a\nb",
        "a\tb"})
    EXPECT_FALSE(isPlainLine(bad)) << bad;
  EXPECT_FALSE(isPlainLine(std::string_view("\0", 1)));
}
