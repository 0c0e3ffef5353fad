//===- MappedFile.h - A file read as memory ---------------------*- C++ -*-===//
#ifndef FSDP_SUPPORT_MAPPEDFILE_H
#define FSDP_SUPPORT_MAPPEDFILE_H

#include "fsdp/Support/AtomicFile.h"
#include <string>
#include <string_view>

namespace fsdp {

/// The bytes of a file as they are when they are looked at. What is no regular
/// file (a pipe) is read whole, or refused. Whoever makes a file shorter while
/// it is mapped ends the process that reads beyond: check sizes after opening,
/// and replace files instead of writing into them.
class MappedFile {
public:
  /// `what` says in messages what it is: "the tensors in". Throws fsdp::Error.
  MappedFile(const std::string &path, const std::string &what,
             FileKind kind = FileKind::Any);
  ~MappedFile();
  MappedFile(const MappedFile &) = delete;
  MappedFile &operator=(const MappedFile &) = delete;

  std::string_view bytes() const { return view; }

private:
  std::string_view view;
  bool isMapped = false;
  std::string text; // of what cannot be mapped
};

} // namespace fsdp

#endif // FSDP_SUPPORT_MAPPEDFILE_H
