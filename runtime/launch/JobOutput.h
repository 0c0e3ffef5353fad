//===- JobOutput.h - One message per failed job -----------------*- C++ -*-===//
//
// When a job fails, every rank and mpirun itself have something to say, in
// several paragraphs. A person needs one line: what went wrong first. This
// filter reads the job's error stream line by line, passes on what is no
// diagnostic, and keeps what explains the failure.
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

  /// The message for a job that ended with `status`, without a newline.
  std::string failure(int status) const;

private:
  void takeParagraph();

  std::string firstMessage; // the first rank that explained itself
  std::string lostRank;     // what mpirun said about a rank that could not
  std::string held;         // mpirun's own words, the last resort
  std::string paragraph;    // between two rules of dashes
  bool inParagraph = false;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_JOBOUTPUT_H
