//===- Json.h - A bound on nesting ------------------------------*- C++ -*-===//
#ifndef FSDP_SUPPORT_JSON_H
#define FSDP_SUPPORT_JSON_H

#include <string_view>

namespace fsdp {

/// Brackets within brackets: more than any text of ours has, and far below what
/// the stack holds. For the runtime's reader of JSON and the compiler's alike.
inline constexpr int kMaxJsonDepth = 64;

/// Whether brackets are nested deeper than that. Asked before a text is parsed:
/// parsers and printers of JSON call themselves once per bracket and would run
/// out of stack.
bool isNestedTooDeep(std::string_view json);

} // namespace fsdp

#endif // FSDP_SUPPORT_JSON_H
