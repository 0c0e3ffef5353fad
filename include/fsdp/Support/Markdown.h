//===- Markdown.h - Tables of the generated references ----------*- C++ -*-===//
#ifndef FSDP_SUPPORT_MARKDOWN_H
#define FSDP_SUPPORT_MARKDOWN_H

#include <string>
#include <vector>

namespace fsdp::markdown {

std::string code(const std::string &text);

/// A row of a table; bars in `cells` do not end one.
std::string row(const std::vector<std::string> &cells);

/// The begin of a table, after an empty line.
std::string head(const std::vector<std::string> &cells);

} // namespace fsdp::markdown

#endif // FSDP_SUPPORT_MARKDOWN_H
