//===- Error.h - The one exception for bad input ----------------*- C++ -*-===//
//
// Thrown wherever a run cannot go on because of what it was given: a key, a
// file, an artifact, an environment. The message names the thing and the
// place and is printed once, by main, which then ends with a non-zero status.
// Broken invariants of our own are assertions, never this.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_ERROR_H
#define FSDP_SUPPORT_ERROR_H

#include <stdexcept>
#include <string>

namespace fsdp {

class Error : public std::runtime_error {
public:
  explicit Error(const std::string &message) : std::runtime_error(message) {}
};

} // namespace fsdp

#endif // FSDP_SUPPORT_ERROR_H
