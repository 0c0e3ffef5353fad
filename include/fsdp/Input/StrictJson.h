//===- StrictJson.h - JSON in which nothing is dropped ----------*- C++ -*-===//
//
// LLVM's reader keeps the last of two equal keys, reads 1e999 as infinity, and
// recurses as deep as the text does. What the compiler reads goes through this
// one, which refuses all three.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_INPUT_STRICTJSON_H
#define FSDP_INPUT_STRICTJSON_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/JSON.h"

namespace fsdp {

/// Parses `text`, in which no object has a key twice, every number is finite
/// and nothing is nested deeper than 64 levels. Errors name the line and the
/// place below `root`, the document's name: "plan.units[2].name".
llvm::Expected<llvm::json::Value> parseStrictJson(llvm::StringRef text,
                                                  llvm::StringRef root);

/// The keys of `object` that are not in `known`, in alphabetical order.
std::vector<std::string> unknownKeys(const llvm::json::Object &object,
                                     llvm::ArrayRef<std::string> known);

} // namespace fsdp

#endif // FSDP_INPUT_STRICTJSON_H
