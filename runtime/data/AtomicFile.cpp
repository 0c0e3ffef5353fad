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

std::string rt::partialPath(const std::string &path) {
  return path + ".partial";
}

AtomicFile::AtomicFile(const std::string &path)
    : path(path), partial(partialPath(path)),
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
  int error = std::fclose(closing) != 0 ? errno : 0;
  if (error == 0 && std::rename(partial.c_str(), path.c_str()) != 0)
    error = errno;
  if (error == 0)
    return;
  std::remove(partial.c_str());
  errno = error;
  fail("write");
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
