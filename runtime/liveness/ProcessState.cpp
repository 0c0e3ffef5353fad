//===- ProcessState.cpp - Whether a process runs --------------------------===//
#include "ProcessState.h"
#include "fsdp/Rendezvous/Environment.h"
#include <fstream>
#include <sstream>

using namespace fsdp::rt;

static std::string procPath(int64_t pid, const char *name) {
  return "/proc/" + std::to_string(pid) + "/" + name;
}

ProcessState fsdp::rt::processState(int64_t pid) {
  std::ifstream file(procPath(pid, "stat"));
  std::string line;
  std::getline(file, line);
  // The name before the state is in parentheses and may hold anything.
  size_t name = line.rfind(')');
  if (name == std::string::npos)
    return {};
  ProcessState process;
  std::istringstream fields(line.substr(name + 1));
  fields >> process.state;
  // The start is field 22, the state field 3.
  std::string skipped;
  for (int field = 4; field < 22; ++field)
    fields >> skipped;
  fields >> process.startTime;
  return process;
}

bool fsdp::rt::isStopped(const ProcessState &process) {
  return process.state == 'T' || process.state == 't';
}

std::string fsdp::rt::thisHost() {
  return hostName().substr(0, kHostCharacters);
}

bool fsdp::rt::isThisHost(const std::string &host) {
  return thisHost() == host;
}

const char *fsdp::rt::whyIsSilent(int64_t pid, const std::string &host) {
  bool isHere = isThisHost(host);
  ProcessState process = isHere ? processState(pid) : ProcessState{};
  return isStopped(process) ? "it is stopped"
         : isHere && (process.state == 0 || process.state == 'Z')
             ? "it has ended"
             : "it is stopped, dead or out of reach";
}
