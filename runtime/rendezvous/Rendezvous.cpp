//===- Rendezvous.cpp - How ranks find each other without MPI -------------===//
#include "Rendezvous.h"
#include "JobResources.h"
#include "Transfer.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <ifaddrs.h>
#include <iterator>
#include <memory>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <poll.h>
#include <random>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// What a rank says when it has connected, and rank 0's answer, with its own
/// rank. All else is the same in both.
struct Greeting {
  char magic[8];
  uint64_t job;
  int32_t size, rank, line;
};
enum Line : int32_t { kDataLine, kHeartbeatLine, kLines };
constexpr char kMagic[8] = {'f', 's', 'd', 'p', 'm', 'e', 'e', 't'};

/// A client that is silent for so long is none of ours.
constexpr std::chrono::seconds kGreetingTime{10};

/// Between two attempts.
constexpr std::chrono::milliseconds kPause{50};

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

static Time timeAfter(double seconds) {
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(seconds));
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

/// Listens at one address. Nothing, with `error` set, if it cannot.
static std::optional<Listener> tryToListen(const addrinfo &at, int &error) {
  Connection opened(openSocket(at));
  int on = 1, off = 0;
  bool isOpen = opened.number() >= 0;
  if (isOpen) {
    setsockopt(opened.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    setsockopt(opened.number(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (!isOpen || ::bind(opened.number(), at.ai_addr, at.ai_addrlen) != 0 ||
      ::listen(opened.number(), SOMAXCONN) != 0) {
    error = errno;
    return std::nullopt;
  }
  int number = opened.release();
  return Listener(number, portOf(number));
}

Listener rt::listenAt(const std::string &host, int port, double seconds) {
  Addresses addresses = addressesOf(host, port);
  Time end = timeAfter(seconds);
  for (;;) {
    int error = EADDRNOTAVAIL;
    // A socket of IPv6 takes connections of both versions.
    for (int family : {AF_INET6, AF_INET})
      for (const addrinfo *at = addresses.get(); at; at = at->ai_next)
        if (at->ai_family == family)
          if (auto listener = tryToListen(*at, error))
            return std::move(*listener);
    if (error != EADDRINUSE || Clock::now() + kPause >= end)
      throw Error("cannot listen at " + nameOf(host, port) + ": " +
                  std::strerror(error) +
                  (port == 0 ? ""
                             : std::string("; set ") + kPortVariable +
                                   " to a free port, the same for all ranks"));
    std::this_thread::sleep_for(kPause);
  }
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

static Greeting greetingOf(uint64_t job, int size, int rank, int line) {
  Greeting greeting{};
  std::memcpy(greeting.magic, kMagic, sizeof kMagic);
  greeting.job = job;
  greeting.size = size;
  greeting.rank = rank;
  greeting.line = line;
  return greeting;
}

/// Whether the other end of a connection has closed it, read or unread.
static bool isClosedByPeer(int socket) {
  pollfd peer = {socket, POLLRDHUP, 0};
  return poll(&peer, 1, 0) > 0;
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
  for (auto [option, value] : {std::pair(TCP_KEEPIDLE, kKeepAliveIdle),
                               std::pair(TCP_KEEPINTVL, kKeepAliveInterval),
                               std::pair(TCP_KEEPCNT, kKeepAliveCount)})
    setsockopt(socket, IPPROTO_TCP, option, &value, sizeof value);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
  return connection.release();
}

//===----------------------------------------------------------------------===//
// Rank 0
//===----------------------------------------------------------------------===//

namespace {

/// Takes connections until every rank has one. A client that is slow keeps
/// nobody waiting.
class Reception {
public:
  /// Of each rank, the lines from `firstLine` on come.
  Reception(const Listener &listener, uint64_t job, int size, Line firstLine)
      : listener(listener), job(job), firstLine(firstLine),
        ranks(static_cast<size_t>(size)) {}

  Lines take(Time end, double seconds);

private:
  struct Guest {
    Connection connection;
    Time end;
    size_t received = 0;
    Greeting greeting{};
  };

  bool isHere(const std::array<Connection, kLines> &lines) const;
  bool isComplete() const;
  void waitForSomebody(Time end) const;
  void acceptGuests();
  void listenTo(Guest &guest);
  void welcome(Guest &guest);
  std::string missing() const;

  const Listener &listener;
  uint64_t job;
  Line firstLine;
  // By rank and then by line. Rank 0 has none.
  std::vector<std::array<Connection, kLines>> ranks;
  std::vector<Guest> guests;
  int strangers = 0;
};

} // namespace

bool Reception::isHere(const std::array<Connection, kLines> &lines) const {
  return std::all_of(lines.begin() + firstLine, lines.end(),
                     [](const Connection &c) { return c.number() >= 0; });
}

bool Reception::isComplete() const {
  return std::all_of(ranks.begin() + 1, ranks.end(),
                     [this](const auto &lines) { return isHere(lines); });
}

void Reception::waitForSomebody(Time end) const {
  std::vector<pollfd> ready = {{listener.socket, POLLIN, 0}};
  for (const Guest &guest : guests) {
    ready.push_back({guest.connection.number(), POLLIN, 0});
    end = std::min(end, guest.end);
  }
  poll(ready.data(), ready.size(), millisecondsUntil(end));
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
  int size = static_cast<int>(ranks.size()), rank = guest.greeting.rank,
      line = guest.greeting.line;
  if (!isOfJob(guest.greeting, job, size) || rank < 1 || rank >= size ||
      line < firstLine || line >= kLines) {
    ++strangers;
    return;
  }
  auto &lines = ranks[static_cast<size_t>(rank)];
  Connection &place = lines[static_cast<size_t>(line)];
  // One that has gone again may come back, with lines of its own.
  if (place.number() >= 0 && isClosedByPeer(place.number()))
    for (Connection &other : lines)
      other = Connection();
  if (place.number() >= 0)
    throw Error("two processes say that they are rank " + std::to_string(rank) +
                " of this job; the launcher's variables are wrong");
  Greeting mine = greetingOf(job, size, 0, line);
  if (sendAll(connection.number(), &mine, sizeof mine,
              Clock::now() + kGreetingTime))
    place = std::move(connection);
}

/// "ranks 2, 3", at most a few of them.
std::string Reception::missing() const {
  std::string names;
  int count = 0;
  for (size_t r = 1; r < ranks.size(); ++r) {
    if (isHere(ranks[r]))
      continue;
    if (++count <= 8)
      names += (names.empty() ? "" : ", ") + std::to_string(r);
  }
  return (count == 1 ? "rank " : "ranks ") + names +
         (count > 8 ? " and " + std::to_string(count - 8) + " more" : "");
}

/// `seconds`, for the message, is the time in which they have to come.
Lines Reception::take(Time end, double seconds) {
  while (!isComplete()) {
    if (Clock::now() >= end)
      throw Error(missing() + " of " + std::to_string(ranks.size()) +
                  " did not connect to " + nameOf("", listener.port) +
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
  Lines lines{{-1}, {-1}};
  for (size_t r = 1; r < ranks.size(); ++r) {
    lines.data.push_back(finish(std::move(ranks[r][kDataLine])));
    lines.heartbeats.push_back(finish(std::move(ranks[r][kHeartbeatLine])));
  }
  return lines;
}

Lines rt::acceptRanks(const Listener &listener, uint64_t job, int size,
                      double seconds) {
  return Reception(listener, job, size, kDataLine)
      .take(timeAfter(seconds), seconds);
}

//===----------------------------------------------------------------------===//
// The others
//===----------------------------------------------------------------------===//

/// One attempt at one address, which has until `soon` to take the connection.
/// Nothing, with `problem` set, if it fails.
static std::optional<int> tryAddress(const addrinfo &at, const Greeting &mine,
                                     Time soon, Time end,
                                     std::string &problem) {
  Connection connection(openSocket(at));
  int socket = connection.number();
  if (socket < 0) {
    problem = std::strerror(errno);
    return std::nullopt;
  }
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
  if (sendAll(socket, &mine, sizeof mine, end) &&
      receiveAll(socket, &theirs, sizeof theirs, end) &&
      isOfJob(theirs, mine.job, mine.size) && theirs.rank == 0 &&
      theirs.line == mine.line)
    return finish(std::move(connection));
  problem = "what listens there is not rank 0 of this job";
  return std::nullopt;
}

static int connectToFirst(const std::vector<std::string> &hosts, int port,
                          const Greeting &mine, double seconds, Time end) {
  std::vector<Addresses> lists;
  std::vector<const addrinfo *> all;
  for (const std::string &host : hosts) {
    lists.push_back(addressesOf(host, port));
    for (const addrinfo *at = lists.back().get(); at; at = at->ai_next)
      all.push_back(at);
  }
  std::string problem;
  // Of many networks most may lead nowhere: an address that does not answer has
  // a second at first, and more in later rounds.
  for (std::chrono::seconds patience{1};;
       patience = std::min(2 * patience, kGreetingTime)) {
    // Whoever takes a connection and is silent leaves time for the others.
    auto left = static_cast<int>(all.size());
    for (const addrinfo *at : all) {
      Time now = Clock::now(), share = now + (end - now) / left--;
      if (auto socket = tryAddress(*at, mine, std::min(share, now + patience),
                                   share, problem))
        return *socket;
    }
    if (Clock::now() + kPause >= end)
      throw Error("rank " + std::to_string(mine.rank) +
                  " cannot reach rank 0 at " +
                  nameOf(joinedText(hosts, ", "), port) + " within " +
                  format("%g", seconds) +
                  " s (FSDP_JOIN_TIMEOUT sets the limit): " + problem);
    std::this_thread::sleep_for(kPause);
  }
}

static void allowConnections(int lines, int size) {
  // Without the connections.
  constexpr uint64_t least = 64, spare = 32;
  uint64_t own = std::max(least, countOpenFiles() + spare);
  allowOpenFiles(own +
                     static_cast<uint64_t>(lines) * static_cast<uint64_t>(size),
                 "rank 0 of " + std::to_string(size) + " ranks needs");
}

Lines rt::rendezvous(const RendezvousEndpoint &place, int rank, int size,
                     double seconds) {
  Time end = timeAfter(seconds);
  auto connectLine = [&](int line) {
    return connectToFirst({place.host}, place.port,
                          greetingOf(place.job, size, rank, line), seconds,
                          end);
  };
  if (rank != 0) {
    int data = connectLine(kDataLine);
    return {{data}, {connectLine(kHeartbeatLine)}};
  }
  Listener listener = inheritedListener();
  allowConnections(kLines, size);
  if (listener.socket < 0)
    listener = listenAt("", place.port, seconds);
  return Reception(listener, place.job, size, kDataLine).take(end, seconds);
}

//===----------------------------------------------------------------------===//
// By invitation
//===----------------------------------------------------------------------===//

Invitation rt::inviteRanks(const Listener &listener) {
  std::random_device random;
  Invitation invitation{};
  invitation.job = uint64_t{random()} << 32 | random();
  invitation.port = listener.port;
  ifaddrs *list = nullptr;
  if (getifaddrs(&list) != 0)
    throw Error(std::string("cannot list the addresses of this machine: ") +
                std::strerror(errno));
  std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  // A rank on another machine finds itself at those of the loopback.
  for (bool isLoopback : {false, true})
    for (const ifaddrs *at = list; at; at = at->ifa_next) {
      int family = at->ifa_addr ? at->ifa_addr->sa_family : AF_UNSPEC;
      if ((family != AF_INET && family != AF_INET6) ||
          (at->ifa_flags & IFF_UP) == 0 ||
          ((at->ifa_flags & IFF_LOOPBACK) != 0) != isLoopback ||
          invitation.count == int32_t{std::size(invitation.address)})
        continue;
      socklen_t bytes =
          family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
      char *to = invitation.address[invitation.count];
      // One with a scope ("fe80::1%eth0") is of use on this machine alone.
      if (getnameinfo(at->ifa_addr, bytes, to, sizeof *invitation.address,
                      nullptr, 0, NI_NUMERICHOST) == 0 &&
          !std::strchr(to, '%'))
        ++invitation.count;
    }
  return invitation;
}

std::vector<int> rt::connectInvited(const Invitation &invitation,
                                    const Listener &listener, int rank,
                                    int size, double seconds) {
  Time end = timeAfter(seconds);
  if (rank == 0) {
    allowConnections(1, size);
    return Reception(listener, invitation.job, size, kHeartbeatLine)
        .take(end, seconds)
        .heartbeats;
  }
  std::vector<std::string> hosts(invitation.address,
                                 invitation.address + invitation.count);
  return {connectToFirst(hosts, invitation.port,
                         greetingOf(invitation.job, size, rank, kHeartbeatLine),
                         seconds, end)};
}
