//===- Message.h - Taking messages apart ------------------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_MESSAGE_H
#define FSDP_TEST_FAKECUDA_MESSAGE_H

#include <cstring>
#include <stdexcept>
#include <vector>

namespace fsdp::fake {

/// The structure of a call. Throws std::runtime_error if it is not all there.
template <typename T> T bodyOf(const std::vector<char> &message) {
  if (message.size() < sizeof(T))
    throw std::runtime_error("a message of the wrong size");
  T body;
  std::memcpy(&body, message.data(), sizeof body);
  return body;
}

/// What lies behind the structure, as elements.
template <typename T, typename Element>
std::vector<Element> restOf(const std::vector<char> &message) {
  std::vector<Element> rest((message.size() - sizeof(T)) / sizeof(Element));
  if (!rest.empty())
    std::memcpy(rest.data(), message.data() + sizeof(T),
                rest.size() * sizeof(Element));
  return rest;
}

template <typename T> void putBody(std::vector<char> &message, const T &body) {
  std::memcpy(message.data(), &body, sizeof body);
}

template <typename T> std::vector<char> bytesOf(const T &value) {
  auto *from = reinterpret_cast<const char *>(&value);
  return std::vector<char>(from, from + sizeof value);
}

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_MESSAGE_H
