//===- StrictJson.h - JSON that means one thing -----------------*- C++ -*-===//
#ifndef FSDP_SUPPORT_STRICTJSON_H
#define FSDP_SUPPORT_STRICTJSON_H

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace fsdp::rt {

/// Parses a text of bounded depth in which no object has a key twice, of which
/// readers would take the first or the last. Otherwise says why in `problem`.
/// The compiler has a reader of its own, on LLVM's parser, which names places:
/// fsdp/Input/StrictJson.h.
nlohmann::json parseStrictJson(std::string_view text, std::string &problem);

} // namespace fsdp::rt

#endif // FSDP_SUPPORT_STRICTJSON_H
