//===- Timeline.cpp - A timeline of every launch --------------------------===//
#include "Timeline.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::rt;

int64_t fsdp::rt::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

const char *fsdp::rt::gemmName(const GemmDesc &desc) {
  static const char *const f32[] = {"gemm nn f32", "gemm nt f32", "gemm tn f32",
                                    "gemm tt f32"};
  static const char *const bf16[] = {"gemm nn bf16", "gemm nt bf16",
                                     "gemm tn bf16", "gemm tt bf16"};
  return (desc.in == DType::BF16
              ? bf16
              : f32)[2 * desc.transposeLhs + desc.transposeRhs];
}

void Timeline::enable(const std::string &file, int ofRank, CallNames ofCalls) {
  path = file;
  rank = ofRank;
  names = std::move(ofCalls);
  ring.resize(1 << 17);
}

void Timeline::beginProgram(int index) {
  program = index;
  call = -1;
}

const char *Timeline::address() const {
  auto at = static_cast<size_t>(program), number = static_cast<size_t>(call);
  bool isKnown = at < names.size() && number < names[at].size() &&
                 !names[at][number].empty();
  return isKnown ? names[at][number].c_str() : nullptr;
}

void Timeline::addStep(int64_t number, int64_t begin) {
  if (on())
    add({"step", {number, 0, 0, 0}, begin, now(), kSteps, nullptr});
}

Timeline::Span::Span(Timeline &t, Stream stream, const char *name, int64_t a,
                     int64_t b, int64_t c, int64_t d)
    : timeline(t.on() ? &t : nullptr), stream(stream), name(name),
      numbers{a, b, c, d} {
  if (timeline)
    begin = now();
}

Timeline::Span::~Span() {
  if (timeline)
    timeline->add({name,
                   {numbers[0], numbers[1], numbers[2], numbers[3]},
                   begin,
                   now(),
                   int(stream),
                   // Other streams' spans are those of other threads, and their
                   // names are addresses.
                   stream == Stream::Compute ? timeline->address() : nullptr});
}

void Timeline::add(const Entry &entry) {
  ring[used.fetch_add(1) % ring.size()] = entry;
}

Timeline::~Timeline() {
  try {
    write();
  } catch (const Error &error) {
    // The cause of the run's end is another, which "fsdp:" begins.
    std::fprintf(stderr, "fsdp-run: warning: the trace is lost: %s\n",
                 error.what());
  }
}

/// A JSON string; names come from user models.
static std::string quoted(const char *name) {
  return nlohmann::json(name).dump(-1, ' ', false,
                                   nlohmann::json::error_handler_t::replace);
}

const char *fsdp::rt::streamName(Stream stream) {
  static const char *const names[kStreams] = {"compute", "gather", "reduce",
                                              "copy"};
  return names[int(stream)];
}

/// "layers.3" of "fwd layers.3.attention.wq linear", "norm" of "fwd norm
/// rms_norm": the path up to its first number, or the whole.
static std::string layerOf(const std::string &address) {
  size_t begin = address.find(' '), end = address.find(' ', begin + 1);
  if (begin == std::string::npos || end == std::string::npos)
    return "";
  std::string path = address.substr(begin + 1, end - begin - 1);
  for (size_t dot = path.find('.'); dot != std::string::npos;
       dot = path.find('.', dot + 1)) {
    size_t next = path.find_first_not_of("0123456789", dot + 1);
    if (next != dot + 1 && dot + 1 < path.size() &&
        (next == std::string::npos || path[next] == '.'))
      return path.substr(0, next);
  }
  return path;
}

/// What a span of a track is called, and what it is of.
static std::string titleOf(const Timeline::Entry &entry) {
  bool isStep = entry.track == Timeline::kSteps && entry.numbers[0] > 0;
  std::string name = entry.name;
  if (isStep)
    name += ' ' + std::to_string(entry.numbers[0]);
  return quoted(name.c_str());
}

static std::string placeOf(const Timeline::Entry &entry) {
  if (!entry.address)
    return "";
  return ",\"address\":" + quoted(entry.address) +
         ",\"layer\":" + quoted(layerOf(entry.address).c_str());
}

void Timeline::writeTo(AtomicFile &file) const {
  file.write("{\"traceEvents\":[\n");
  for (int t = 0; t <= kSteps; ++t)
    file.write(format("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,"
                      "\"tid\":%d,\"args\":{\"name\":\"%s\"}},\n",
                      rank, t, t == kSteps ? "steps" : streamName(Stream(t))));
  uint64_t total = used.load();
  uint64_t first = total > ring.size() ? total - ring.size() : 0;
  for (uint64_t i = first; i < total; ++i) {
    const Entry &e = ring[i % ring.size()];
    file.write("{\"ph\":\"X\",\"name\":" + titleOf(e));
    file.write(format(
        ",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
        "\"args\":{\"sizes\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 "]",
        rank, e.track, double(e.begin) / 1e3, double(e.end - e.begin) / 1e3,
        e.numbers[0], e.numbers[1], e.numbers[2], e.numbers[3]));
    file.write(placeOf(e) + "}},\n");
  }
  file.write(format("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
                    "\"args\":{\"name\":\"rank %d\"}}\n]}\n",
                    rank, rank));
}

void Timeline::write() {
  if (!on())
    return;
  try {
    AtomicFile file(path);
    writeTo(file);
    file.commit();
  } catch (const Error &) {
    ring.clear();
    throw;
  }
  ring.clear();
}
