//===- AtomicFile.cpp - Files that are whole or absent --------------------===//
#include "fsdp/Runtime/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

using namespace fsdp;
using namespace fsdp::rt;

AtomicFile::AtomicFile(const std::string &path)
    : path(path), partial(path + ".partial"),
      file(std::fopen(partial.c_str(), "wb")) {
  if (!file)
    fail("create");
}

AtomicFile::~AtomicFile() {
  if (!file)
    return;
  std::fclose(file);
  std::remove(partial.c_str());
}

void AtomicFile::fail(const char *action) const {
  throw Error(std::string("cannot ") + action + " '" + path +
              "': " + std::strerror(errno));
}

void AtomicFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file) != bytes.size())
    fail("write");
}

void AtomicFile::flush() {
  if (std::fflush(file) != 0)
    fail("write");
}

void AtomicFile::commit() {
  std::FILE *closing = file;
  file = nullptr;
  if (std::fclose(closing) != 0) {
    std::remove(partial.c_str());
    fail("write");
  }
  if (std::rename(partial.c_str(), path.c_str()) != 0)
    fail("rename the partial file to");
}

void rt::writeFileAtomically(const std::string &path, std::string_view bytes) {
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

void rt::makeDirectories(const std::string &path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error)
    throw Error("cannot make the folder '" + path + "': " + error.message());
}

std::string rt::readWholeFile(const std::string &path,
                              const std::string &what) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file)
    throw Error("cannot read " + what + " '" + path + "'");
  return text;
}
