//===- JobOutput.cpp - One message per failed job -------------------------===//
#include "JobOutput.h"
#include <regex>

using namespace fsdp::rt;

/// mpirun frames its messages by lines of dashes.
static bool isRule(const std::string &line) {
  return line.size() >= 20 && line.find_first_not_of('-') == std::string::npos;
}

/// Open MPI's diagnostics begin with "[host:12345] ", those of its event
/// library with "[warn] " or "[err] ", those of mpirun with its name.
static bool isMpiDiagnostic(const std::string &line) {
  static const std::regex pattern("^\\[([^\\]]+:[0-9]+|warn|err)\\] .*");
  // A line of a stack that lost its beginning to another rank's.
  static const std::regex frame("^\\S*\\([^()]*\\)\\[0x[0-9a-f]+\\]$");
  return std::regex_match(line, pattern) || std::regex_match(line, frame) ||
         line.rfind("mpirun: ", 0) == 0;
}

bool JobOutput::takeLine(const std::string &line) {
  if (isRule(line)) {
    if (inParagraph)
      takeParagraph();
    inParagraph = !inParagraph;
    return false;
  }
  if (inParagraph) {
    paragraph += line + " ";
    held += line + "\n";
    return false;
  }
  if (isMpiDiagnostic(line)) {
    held += line + "\n";
    return false;
  }
  if (line.rfind("fsdp: ", 0) != 0)
    return true;
  if (firstMessage.empty())
    firstMessage = line.substr(6);
  return false;
}

void JobOutput::takeParagraph() {
  static const std::regex pattern(
      "process rank ([0-9]+) .*exited on signal ([0-9]+) \\(([^)]*)\\)");
  std::smatch match;
  if (lostRank.empty() && std::regex_search(paragraph, match, pattern))
    lostRank = "rank " + match[1].str() + " was ended by signal " +
               match[2].str() + " (" + match[3].str() +
               "); the whole job was stopped";
  paragraph.clear();
}

std::string JobOutput::failure(int status) const {
  // A lost rank comes first: the others' messages are its consequences.
  if (!lostRank.empty())
    return lostRank;
  if (!firstMessage.empty())
    return firstMessage;
  return held + "the job ended with status " + std::to_string(status);
}
