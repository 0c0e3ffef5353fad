//===- Meeting.cpp - How ranks find each other without MPI ----------------===//
#include "Meeting.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

/// What a rank says when it has connected, and rank 0's answer, with its own
/// rank. Job and magic are the same in both.
struct Greeting {
  char magic[8];
  uint64_t job;
  int32_t size, rank;
};
constexpr char kMagic[8] = {'f', 's', 'd', 'p', 'm', 'e', 'e', 't'};

/// A client that is silent for so long is none of ours.
constexpr std::chrono::seconds kGreetingTime{10};

/// A connection that closes itself.
class Connection {
public:
  explicit Connection(int socket = -1) : socket(socket) {}
  Connection(Connection &&other) noexcept
      : socket(std::exchange(other.socket, -1)) {}
  Connection &operator=(Connection &&other) noexcept {
    std::swap(socket, other.socket);
    return *this;
  }
  ~Connection() {
    if (socket >= 0)
      ::close(socket);
  }
  int number() const { return socket; }
  int release() { return std::exchange(socket, -1); }

private:
  int socket;
};

struct FreeAddresses {
  void operator()(addrinfo *list) const { freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

} // namespace

//===----------------------------------------------------------------------===//
// Sockets
//===----------------------------------------------------------------------===//

Listener::Listener(Listener &&other) noexcept
    : socket(std::exchange(other.socket, -1)), port(other.port) {}

Listener &Listener::operator=(Listener &&other) noexcept {
  std::swap(socket, other.socket);
  std::swap(port, other.port);
  return *this;
}

void Listener::close() {
  if (socket >= 0)
    ::close(std::exchange(socket, -1));
}

static std::string nameOf(const std::string &host, int port) {
  return (host.empty() ? "" : host + " ") + "port " + std::to_string(port);
}

/// All addresses of a host; of this machine, to listen at, if it is empty.
static Addresses addressesOf(const std::string &host, int port) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host.empty() ? AI_PASSIVE : 0);
  int status = getaddrinfo(host.empty() ? nullptr : host.c_str(),
                           std::to_string(port).c_str(), &hints, &found);
  if (status != 0)
    throw Error("cannot find the host '" + host +
                "' of rank 0: " + gai_strerror(status));
  return Addresses(found);
}

static int openSocket(const addrinfo &at) {
  return ::socket(at.ai_family, at.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  at.ai_protocol);
}

static int portOf(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char port[16] = "0";
  auto *any = reinterpret_cast<sockaddr *>(&address);
  if (getsockname(socket, any, &size) == 0)
    getnameinfo(any, size, nullptr, 0, port, sizeof port, NI_NUMERICSERV);
  return std::atoi(port);
}

Listener rt::listenAt(const std::string &host, int port) {
  Addresses addresses = addressesOf(host, port);
  int error = EADDRNOTAVAIL;
  // A socket of IPv6 takes connections of both versions.
  for (int family : {AF_INET6, AF_INET})
    for (const addrinfo *at = addresses.get(); at; at = at->ai_next) {
      if (at->ai_family != family)
        continue;
      Connection opened(openSocket(*at));
      int on = 1, off = 0;
      setsockopt(opened.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
      setsockopt(opened.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
      if (::bind(opened.number(), at->ai_addr, at->ai_addrlen) == 0 &&
          ::listen(opened.number(), SOMAXCONN) == 0) {
        int number = opened.release();
        return {number, portOf(number)};
      }
      error = errno;
    }
  throw Error("cannot listen at " + nameOf(host, port) + ": " +
              std::strerror(error) + "; set " + kPortVariable +
              " to a free port, the same for all ranks");
}

/// The socket at which the launcher of a local job listens already, if it does.
static Listener inheritedListener() {
  const char *text = std::getenv(kListenerVariable);
  if (!text)
    return {};
  std::string name = text;
  unsetenv(kListenerVariable);
  int socket = -1, listens = 0;
  socklen_t size = sizeof listens;
  const char *end = name.data() + name.size();
  auto number = std::from_chars(name.data(), end, socket);
  bool isNumber = number.ec == std::errc() && number.ptr == end;
  if (!isNumber ||
      getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 ||
      !listens || fcntl(socket, F_SETFD, FD_CLOEXEC) != 0)
    throw Error(std::string("environment: ") + kListenerVariable + " = '" +
                name + "' is no socket that listens");
  return {socket, portOf(socket)};
}

/// Milliseconds for poll until `end`.
static int untilTime(Time end) {
  auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
  return static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 60000));
}

/// Waits for what poll calls `events`. False: not before `end`.
static bool await(int socket, short events, Time end) {
  while (Clock::now() < end) {
    pollfd ready{socket, events, 0};
    if (poll(&ready, 1, untilTime(end)) > 0)
      return true;
  }
  return false;
}

/// Sends or receives all bytes until `end`; false if that cannot be.
template <typename Transfer>
static bool transferAll(int socket, size_t bytes, short events, Time end,
                        Transfer transfer) {
  for (size_t done = 0; done < bytes;) {
    ssize_t count = transfer(done);
    if (count > 0)
      done += static_cast<size_t>(count);
    else if (count == 0 || (errno != EINTR && errno != EAGAIN) ||
             !await(socket, events, end))
      return false;
  }
  return true;
}

static bool sendGreeting(int socket, const Greeting &greeting, Time end) {
  const auto *from = reinterpret_cast<const char *>(&greeting);
  return transferAll(socket, sizeof greeting, POLLOUT, end, [&](size_t done) {
    return ::send(socket, from + done, sizeof greeting - done, MSG_NOSIGNAL);
  });
}

static bool receiveGreeting(int socket, Greeting &greeting, Time end) {
  auto *to = reinterpret_cast<char *>(&greeting);
  return transferAll(socket, sizeof greeting, POLLIN, end, [&](size_t done) {
    return ::recv(socket, to + done, sizeof greeting - done, 0);
  });
}

static Greeting greetingOf(uint64_t job, int size, int rank) {
  Greeting greeting{};
  std::memcpy(greeting.magic, kMagic, sizeof kMagic);
  greeting.job = job;
  greeting.size = size;
  greeting.rank = rank;
  return greeting;
}

static bool isOfJob(const Greeting &greeting, uint64_t job, int size) {
  return std::memcmp(greeting.magic, kMagic, sizeof kMagic) == 0 &&
         greeting.job == job && greeting.size == size;
}

/// The connection as the job uses it: calls wait, and a machine that is gone is
/// noticed.
static int finish(Connection connection) {
  int socket = connection.number(), on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  return connection.release();
}

static Time timeAfter(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

namespace {

/// Takes connections until every rank has one. A client that is slow keeps
/// nobody waiting.
class Reception {
public:
  Reception(const Listener &listener, uint64_t job, int size)
      : listener(listener), job(job), ranks(static_cast<size_t>(size)) {}

  std::vector<int> take(double seconds);

private:
  struct Guest {
    Connection connection;
    Time end;
    size_t received = 0;
    Greeting greeting{};
  };

  bool isComplete() const;
  void waitForSomebody(Time end) const;
  void acceptGuests();
  void listenTo(Guest &guest);
  void welcome(Guest &guest);
  std::string missing() const;

  const Listener &listener;
  uint64_t job;
  std::vector<Connection> ranks; // position 0 stays empty
  std::vector<Guest> guests;
  int strangers = 0;
};

} // namespace

bool Reception::isComplete() const {
  return std::all_of(ranks.begin() + 1, ranks.end(),
                     [](const Connection &c) { return c.number() >= 0; });
}

void Reception::waitForSomebody(Time end) const {
  std::vector<pollfd> ready = {{listener.socket, POLLIN, 0}};
  for (const Guest &guest : guests) {
    ready.push_back({guest.connection.number(), POLLIN, 0});
    end = std::min(end, guest.end);
  }
  poll(ready.data(), ready.size(), untilTime(end));
}

void Reception::acceptGuests() {
  for (;;) {
    int socket = ::accept4(listener.socket, nullptr, nullptr,
                           SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
                       errno == ENOBUFS))
      throw Error(std::string("rank 0 cannot take more connections: ") +
                  std::strerror(errno) + " (see ulimit -n)");
    if (socket < 0)
      return;
    guests.push_back({Connection(socket), Clock::now() + kGreetingTime});
  }
}

/// Takes what the guest has said so far. One with nothing more to say, or of
/// another job, is shown out.
void Reception::listenTo(Guest &guest) {
  auto *to = reinterpret_cast<char *>(&guest.greeting);
  size_t wanted = sizeof guest.greeting - guest.received;
  ssize_t count =
      ::recv(guest.connection.number(), to + guest.received, wanted, 0);
  bool isSilent = count < 0 && (errno == EAGAIN || errno == EINTR);
  if (count > 0)
    guest.received += static_cast<size_t>(count);
  if (guest.received == sizeof guest.greeting) {
    welcome(guest);
  } else if ((count <= 0 && !isSilent) || Clock::now() >= guest.end) {
    guest.connection = Connection();
    ++strangers;
  }
}

void Reception::welcome(Guest &guest) {
  Connection connection = std::move(guest.connection);
  int size = static_cast<int>(ranks.size()), rank = guest.greeting.rank;
  if (!isOfJob(guest.greeting, job, size) || rank < 1 || rank >= size) {
    ++strangers;
    return;
  }
  Connection &place = ranks[static_cast<size_t>(rank)];
  if (place.number() >= 0)
    throw Error("two processes say that they are rank " + std::to_string(rank) +
                " of this job; the launcher's variables are wrong");
  // One that has gone again may come back.
  if (sendGreeting(connection.number(), greetingOf(job, size, 0),
                   Clock::now() + kGreetingTime))
    place = std::move(connection);
}

/// "ranks 2, 3", at most a few of them.
std::string Reception::missing() const {
  std::string names;
  int count = 0;
  for (size_t r = 1; r < ranks.size(); ++r) {
    if (ranks[r].number() >= 0)
      continue;
    if (++count <= 8)
      names += (names.empty() ? "" : ", ") + std::to_string(r);
  }
  return (count == 1 ? "rank " : "ranks ") + names +
         (count > 8 ? " and " + std::to_string(count - 8) + " more" : "");
}

std::vector<int> Reception::take(double seconds) {
  Time end = timeAfter(seconds);
  while (!isComplete()) {
    if (Clock::now() >= end)
      throw Error(missing() + " of " + std::to_string(ranks.size()) +
                  " did not come to " + nameOf("", listener.port) +
                  " of rank 0 within " + format("%g", seconds) +
                  " s (FSDP_JOIN_TIMEOUT sets the limit)" +
                  (strangers > 0 ? "; connections that were not of this job: " +
                                       std::to_string(strangers)
                                 : ""));
    waitForSomebody(end);
    acceptGuests();
    for (Guest &guest : guests)
      listenTo(guest);
    guests.erase(std::remove_if(guests.begin(), guests.end(),
                                [](const Guest &guest) {
                                  return guest.connection.number() < 0;
                                }),
                 guests.end());
  }
  std::vector<int> sockets(ranks.size(), -1);
  for (size_t r = 1; r < ranks.size(); ++r)
    sockets[r] = finish(std::move(ranks[r]));
  return sockets;
}

std::vector<int> rt::acceptRanks(const Listener &listener, uint64_t job,
                                 int size, double seconds) {
  return Reception(listener, job, size).take(seconds);
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// One attempt at one address. Nothing, with `problem` set, if it fails.
static std::optional<int> tryAddress(const addrinfo &at, const Greeting &mine,
                                     Time end, std::string &problem) {
  Connection connection(openSocket(at));
  int socket = connection.number();
  // A host that does not answer leaves time for the next one.
  Time soon = std::min(end, Clock::now() + kGreetingTime);
  int error = 0;
  if (::connect(socket, at.ai_addr, at.ai_addrlen) != 0)
    error = errno;
  if (error == EINPROGRESS) {
    socklen_t size = sizeof error;
    if (!await(socket, POLLOUT, soon))
      error = ETIMEDOUT;
    else
      getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &size);
  }
  if (error != 0) {
    problem = std::strerror(error);
    return std::nullopt;
  }
  Greeting theirs{};
  if (sendGreeting(socket, mine, soon) &&
      receiveGreeting(socket, theirs, end) &&
      isOfJob(theirs, mine.job, mine.size) && theirs.rank == 0)
    return finish(std::move(connection));
  problem = "what listens there is not rank 0 of this job";
  return std::nullopt;
}

static int connectToFirst(const MeetingPlace &place, int rank, int size,
                          double seconds) {
  Addresses addresses = addressesOf(place.host, place.port);
  Greeting mine = greetingOf(place.job, size, rank);
  Time end = timeAfter(seconds);
  constexpr std::chrono::milliseconds pause{50};
  std::string problem;
  for (;;) {
    for (const addrinfo *at = addresses.get(); at; at = at->ai_next)
      if (auto socket = tryAddress(*at, mine, end, problem))
        return *socket;
    if (Clock::now() + pause >= end)
      throw Error("rank " + std::to_string(rank) + " cannot reach rank 0 at " +
                  nameOf(place.host, place.port) + " within " +
                  format("%g", seconds) +
                  " s (FSDP_JOIN_TIMEOUT sets the limit): " + problem);
    std::this_thread::sleep_for(pause);
  }
}

std::vector<int> rt::meet(const MeetingPlace &place, int rank, int size,
                          double seconds) {
  if (rank != 0)
    return {connectToFirst(place, rank, size, seconds)};
  Listener listener = inheritedListener();
  if (listener.socket < 0)
    listener = listenAt("", place.port);
  return acceptRanks(listener, place.job, size, seconds);
}
