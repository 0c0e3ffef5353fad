//===- JsonLines.h - Lists that stay tables ---------------------*- C++ -*-===//
#ifndef FSDP_LIB_EMIT_JSONLINES_H
#define FSDP_LIB_EMIT_JSONLINES_H

#include "llvm/Support/JSON.h"

namespace fsdp::emit {

/// The attribute `key`: an array whose elements stand on one line each, as
/// `print` writes them.
template <typename Range, typename Print>
void jsonLines(llvm::json::OStream &json, llvm::StringRef key, Range &&range,
               Print print) {
  json.attributeArray(key, [&] {
    for (auto &&element : range)
      json.rawValue([&](llvm::raw_ostream &os) {
        llvm::json::OStream line(os);
        print(line, element);
      });
  });
}

} // namespace fsdp::emit

#endif // FSDP_LIB_EMIT_JSONLINES_H
