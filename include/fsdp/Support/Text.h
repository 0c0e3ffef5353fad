//===- Text.h - Making and checking text ------------------------*- C++ -*-===//
#ifndef FSDP_SUPPORT_TEXT_H
#define FSDP_SUPPORT_TEXT_H

#include <string>
#include <string_view>
#include <vector>

namespace fsdp {

/// snprintf into a string of the length that it takes.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

/// The same after `text`; allocates nothing where `text` has room.
[[gnu::format(printf, 2, 3)]] void appendFormat(std::string &text,
                                                const char *pattern, ...);

/// Whether the text is one line of UTF-8 without control characters. Such a
/// text may stand in JSON and XML, escaped as they want it.
bool isPlainLine(std::string_view text);

/// The text for a terminal: what stands in a file may hold sequences that move
/// the cursor or hide a line. Control characters but the ends of lines, those
/// that turn the direction of text, and bytes that are no UTF-8 become escapes
/// (\x1b, \u202e).
std::string printable(std::string_view text);
/// The same for a field in a message: ends of lines are \n too.
std::string printableLine(std::string_view text);

bool endsWith(std::string_view text, std::string_view end);

/// The parts with `separator` between them.
std::string joinedText(const std::vector<std::string> &parts,
                       std::string_view separator);

} // namespace fsdp

#endif // FSDP_SUPPORT_TEXT_H
