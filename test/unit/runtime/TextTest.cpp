//===- TextTest.cpp - Making and checking text ----------------------------===//
#include "fsdp/Support/Text.h"
#include "fsdp/Support/Message.h"
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

// What a file holds moves no cursor, hides no line and turns no text.
TEST(Text, PrintableIsShownWhereItStands) {
  using namespace std::string_view_literals;
  for (auto [text, shown] : {
           std::pair("a run, äöü € \xf0\x9f\x98\x80"sv,
                     "a run, äöü € \xf0\x9f\x98\x80"),
           {"", ""},
           {"C:\\x"sv, "C:\\x"},
           {"a\nb\r\tc"sv, "a\\nb\\r\\tc"},
           {"\x1b[2J\x1b]0;title\x07"sv, "\\x1b[2J\\x1b]0;title\\x07"},
           {"\0\x7f\xc2\x9b"sv, "\\x00\\x7f\\x9b"},
           {"\xff\xc3(\xe2\x82"sv, "\\xff\\xc3(\\xe2\\x82"},
           {"\xc0\x8a"sv, "\\xc0\\x8a"},
           {"\xe2\x80\xae\xe2\x80\xa8\xe2\x81\xa6"sv, "\\u202e\\u2028\\u2066"},
       })
    EXPECT_EQ(printableLine(text), shown);
  EXPECT_EQ(printable("a\n\x1b[1mb\r\n"), "a\n\\x1b[1mb\\r\n");
}

TEST(Text, MessagesAreEscaped) {
  testing::internal::CaptureStderr();
  printMessage(kRunWarning, "'a\x1b[2J' is\nhere");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "fsdp-run: warning: 'a\\x1b[2J' is\nhere\n");
}
