//===- Message.cpp - What programs say on standard error ------------------===//
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include <cstdio>
#include <string>

using namespace fsdp;

void fsdp::printMessage(std::string_view who, std::string_view text) {
  std::string line = std::string(who) + ": " + printable(text) + "\n";
  std::fputs(line.c_str(), stderr);
}
