//===- Markdown.cpp - Tables of the generated references ------------------===//
#include "fsdp/Support/Markdown.h"

using namespace fsdp;

std::string markdown::code(const std::string &text) { return '`' + text + '`'; }

std::string markdown::row(const std::vector<std::string> &cells) {
  std::string text = "|";
  for (const std::string &cell : cells) {
    for (char c : cell)
      text += c == '|' ? std::string("\\|") : std::string(1, c);
    text += "|";
  }
  return text + "\n";
}

std::string markdown::head(const std::vector<std::string> &cells) {
  return "\n" + row(cells) + row(std::vector<std::string>(cells.size(), "---"));
}
