//===- Console.cpp - What a run prints ------------------------------------===//
#include "Console.h"
#include <cerrno>
#include <cstdio>

using namespace fsdp;

static int firstError = 0;

static void keepError(bool failed) {
  if (failed && firstError == 0)
    firstError = errno;
}

void fsdp::print(const std::string &text) {
  keepError(std::fwrite(text.data(), 1, text.size(), stdout) != text.size());
  keepError(std::fflush(stdout) != 0);
}

int fsdp::outputError() {
  keepError(std::fflush(stdout) != 0);
  return firstError;
}
