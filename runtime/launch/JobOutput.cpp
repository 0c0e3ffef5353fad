//===- JobOutput.cpp - One message per failed job -------------------------===//
#include "JobOutput.h"

using namespace fsdp::rt;

bool JobOutput::takeLine(const std::string &line) {
  if (line.rfind("fsdp: ", 0) != 0)
    return true;
  if (firstMessage.empty())
    firstMessage = line.substr(6);
  return false;
}

std::string JobOutput::failure(const std::string &process, int status) const {
  return firstMessage.empty()
             ? process + " ended with status " + std::to_string(status) +
                   " and no message; the whole job was stopped"
             : firstMessage;
}
