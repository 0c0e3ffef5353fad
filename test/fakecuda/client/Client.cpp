//===- Client.cpp - The connection to the stand-in device -----------------===//
#include "Client.h"
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

using namespace fsdp::fake;

[[noreturn]] static void die(const std::string &message) {
  std::fprintf(stderr, "fakecuda: %s\n", message.c_str());
  std::_Exit(1);
}

static int connectToDevice() {
  const char *name = std::getenv(kSocketVariable);
  if (!name)
    die(std::string(kSocketVariable) +
        " is not set; start the program with fsdp-fake-device PROGRAM");
  // An abstract name: it leaves no file behind.
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  size_t length = std::strlen(name);
  if (length + 1 > sizeof at.sun_path)
    die(std::string(kSocketVariable) + " is too long");
  std::memcpy(at.sun_path + 1, name, length);
  socklen_t size = socklen_t(offsetof(sockaddr_un, sun_path) + 1 + length);
  int s = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s < 0 || ::connect(s, reinterpret_cast<sockaddr *>(&at), size) != 0)
    die(std::string("cannot reach the device: ") + std::strerror(errno));
  return s;
}

static int rankOfProcess() {
  for (const char *name : {"RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"})
    if (const char *value = std::getenv(name))
      return std::atoi(value);
  return -1;
}

Client &Client::get() {
  // Never destroyed: other destructors may still free memory of the device.
  static Client *client = new Client;
  return *client;
}

static std::string faultOfProcess() {
  const char *text = std::getenv(kFaultVariable);
  return text ? text : "";
}

/// With a GPU it is a fault without a word; here the text says whose memory.
static void reportFault(int signal, siginfo_t *info, void *) {
  uint64_t address = addressOf(info->si_addr);
  if (address >= kFirstAddress && address < kEndOfAddresses) {
    static const char text[] =
        "fakecuda: the host touches memory of the device\n";
    ssize_t ignored = ::write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
  }
  // The same access again, without this function.
  ::signal(signal, SIG_DFL);
}

static void installFaultHandler() {
  struct sigaction action{};
  action.sa_sigaction = reportFault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

Client::Client()
    : socket(connectToDevice()), rank(rankOfProcess()),
      fault(faultOfProcess()) {
  installFaultHandler();
  Hello hello{rank};
  if (ask(Call::Hello, hello) != cudaSuccess)
    die("the device does not answer");
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

bool Client::write(const void *data, uint64_t bytes) {
  auto *from = static_cast<const char *>(data);
  while (bytes > 0) {
    ssize_t sent = ::send(socket, from, bytes, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent <= 0)
      return false;
    from += sent;
    bytes -= uint64_t(sent);
  }
  return true;
}

/// Keeps the file that may come along.
bool Client::read(void *data, uint64_t bytes) {
  auto *to = static_cast<char *>(data);
  while (bytes > 0) {
    iovec part{to, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return false;
    if (cmsghdr *c = CMSG_FIRSTHDR(&message))
      std::memcpy(&file, CMSG_DATA(c), sizeof file);
    to += got;
    bytes -= uint64_t(got);
  }
  return true;
}

cudaError_t Client::lost() {
  if (!hasFailed.exchange(true))
    text = "the stand-in device has ended";
  return cudaErrorLaunchFailure;
}

static uint32_t threadNumber() {
  static thread_local auto number = uint32_t(::gettid());
  return number;
}

cudaError_t Client::post(Call call, bool isAsked, const void *body,
                         uint64_t bodyBytes, const void *more,
                         uint64_t moreBytes) {
  // As on a GPU: after an error nothing works.
  if (hasFailed)
    return cudaErrorLaunchFailure;
  std::lock_guard<std::mutex> lock(writing);
  Header header{call, threadNumber(), isAsked, bodyBytes + moreBytes};
  if (!write(&header, sizeof header) || !write(body, bodyBytes) ||
      !write(more, moreBytes))
    return lost();
  return cudaSuccess;
}

cudaError_t Client::await(std::vector<char> *result) {
  Answer answer;
  if (!read(&answer, sizeof answer))
    return lost();
  std::vector<char> bytes(answer.bytes);
  if (!read(bytes.data(), bytes.size()))
    return lost();
  switch (answer.status) {
  case Status::Done:
    if (result)
      *result = std::move(bytes);
    return cudaSuccess;
  case Status::NotYet:
    return cudaErrorNotReady;
  case Status::OutOfMemory:
    return cudaErrorMemoryAllocation;
  case Status::Refused: {
    int32_t error;
    std::memcpy(&error, bytes.data(), sizeof error);
    text.assign(bytes.data() + sizeof error, bytes.size() - sizeof error);
    refused = cudaError_t(error);
    return refused;
  }
  case Status::Failed:
    break;
  }
  text.assign(bytes.data(), bytes.size());
  hasFailed = true;
  return cudaErrorLaunchFailure;
}

cudaError_t Client::refuse(const std::string &what, cudaError_t status) {
  std::fprintf(stderr, "fakecuda: %s\n", what.c_str());
  refused = status;
  return status;
}

cudaError_t Client::lastError(bool forget) {
  cudaError_t last = hasFailed ? cudaErrorLaunchFailure : refused;
  if (forget)
    refused = cudaSuccess;
  return last;
}

int fsdp::fake::refuseFunction(const char *name, int status) {
  return Client::get().refuse(std::string("the stand-in device has no ") + name,
                              cudaError_t(status));
}

bool Client::isPlanted(const char *kind) {
  bool concerns = fault.kind == kind && (fault.rank < 0 || fault.rank == rank);
  if (!concerns || faultCalls++ != fault.index)
    return false;
  send(Call::Planted, Planted{});
  return true;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// Device memory is mapped without access: a program that reads it on the host
/// faults, as it would with a GPU.
cudaError_t Client::allocate(uint64_t bytes, bool isHost, void **pointer) {
  *pointer = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  std::vector<char> result;
  cudaError_t status = ask(Call::Allocate, Allocate{bytes, isHost}, &result);
  if (status != cudaSuccess)
    return status;
  Allocated allocated;
  std::memcpy(&allocated, result.data(), sizeof allocated);
  std::lock_guard<std::mutex> lock(mutex);
  *pointer = reinterpret_cast<void *>(allocated.address);
  void *mapped = mmap(*pointer, pagesOf(bytes),
                      isHost ? PROT_READ | PROT_WRITE : PROT_NONE,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  ::close(file);
  if (mapped != *pointer)
    die(std::string("cannot map the device's memory: ") + std::strerror(errno));
  memory[allocated.address] = {bytes, isHost};
  return cudaSuccess;
}

cudaError_t Client::free(void *pointer, bool isHost) {
  if (!pointer)
    return cudaSuccess;
  uint64_t bytes;
  {
    std::lock_guard<std::mutex> lock(mutex);
    auto found = memory.find(addressOf(pointer));
    if (found == memory.end() || found->second.isHost != isHost)
      return refuse("freed memory was not allocated that way");
    bytes = found->second.bytes;
    memory.erase(found);
  }
  // Waits for all work of this process, which may use the memory.
  cudaError_t status = ask(Call::Free, Free{addressOf(pointer)});
  munmap(pointer, pagesOf(bytes));
  return status;
}

Client::Place Client::placeOf(const void *pointer) {
  std::lock_guard<std::mutex> lock(mutex);
  auto next = memory.upper_bound(addressOf(pointer));
  if (next == memory.begin())
    return Place::Pageable;
  auto [first, m] = *--next;
  if (addressOf(pointer) >= first + pagesOf(m.bytes))
    return Place::Pageable;
  return m.isHost ? Place::Pinned : Place::Device;
}
