//===- TemporaryFolder.h - Files of one test --------------------*- C++ -*-===//
#ifndef FSDP_TEST_TEMPORARYFOLDER_H
#define FSDP_TEST_TEMPORARYFOLDER_H

#include "fsdp/Support/Error.h"
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <string>

namespace fsdp::test {

/// A folder that disappears with the test.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::string pattern =
        (std::filesystem::temp_directory_path() / "fsdp-XXXXXX").string();
    path = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }

  std::string file(const std::string &name) const { return path + "/" + name; }
  /// Writes a file and returns its path.
  std::string write(const std::string &name, const std::string &text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }

  std::string path;
};

/// The message of the fsdp::Error that `action` throws; empty if it does not.
template <typename Action> std::string messageOf(Action action) {
  try {
    action();
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

} // namespace fsdp::test

#endif // FSDP_TEST_TEMPORARYFOLDER_H
