//===- JobOutput.h - One message per failed job -----------------*- C++ -*-===//
//
// When a job fails, several ranks have something to say. A person needs one
// line: what went wrong first. This filter reads the job's error stream line by
// line, passes on what is no error of a rank, and keeps what explains the
// failure.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LAUNCH_JOBOUTPUT_H
#define FSDP_RUNTIME_LAUNCH_JOBOUTPUT_H

#include <string>

namespace fsdp::rt {

class JobOutput {
public:
  /// Takes one line without its newline. Returns true if the line is to be
  /// printed as it is.
  bool takeLine(const std::string &line);

  /// The message for a job of which `process` ended first, with `status`.
  /// Without a newline.
  std::string failure(const std::string &process, int status) const;

private:
  std::string firstMessage; // of the first rank that explained itself
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_JOBOUTPUT_H
