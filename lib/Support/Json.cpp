//===- Json.cpp - A bound on nesting --------------------------------------===//
#include "fsdp/Support/Json.h"

using namespace fsdp;

bool fsdp::isNestedTooDeep(std::string_view json) {
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (c == '\\')
      ++i; // The next character is no bracket and no end of a string.
    else if (c == '"')
      inString = !inString;
    else if (!inString && (c == '[' || c == '{') && ++depth > kMaxJsonDepth)
      return true;
    else if (!inString && (c == ']' || c == '}'))
      --depth;
  }
  return false;
}
