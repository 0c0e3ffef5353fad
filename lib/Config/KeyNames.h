//===- KeyNames.h - The parts of a key's name -------------------*- C++ -*-===//
#ifndef FSDP_CONFIG_KEYNAMES_H
#define FSDP_CONFIG_KEYNAMES_H

#include <string>

namespace fsdp {

/// Of "quantize.linear.float8": "quantize".
inline std::string sectionOf(const std::string &name) {
  return name.substr(0, name.find('.'));
}

/// The rest.
inline std::string keyOf(const std::string &name) {
  return name.substr(name.find('.') + 1);
}

} // namespace fsdp

#endif // FSDP_CONFIG_KEYNAMES_H
