//===- Trace.cpp - A timeline of every launch -----------------------------===//
#include "Trace.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::rt;

int64_t fsdp::rt::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::string fsdp::rt::tracePath(const std::string &option, int rank) {
  const char *variable = std::getenv("FSDP_TRACE");
  std::string prefix = option.empty() && variable ? variable : option;
  return prefix.empty() ? "" : prefix + "." + std::to_string(rank) + ".json";
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

void Trace::enable(const std::string &file, int ofRank) {
  path = file;
  rank = ofRank;
  ring.resize(1 << 17);
}

Trace::Span::Span(Trace &t, Stream stream, const char *name, int64_t a,
                  int64_t b, int64_t c, int64_t d)
    : trace(t.on() ? &t : nullptr), stream(stream), name(name),
      numbers{a, b, c, d} {
  if (trace)
    begin = now();
}

Trace::Span::~Span() {
  if (trace)
    trace->add({name,
                {numbers[0], numbers[1], numbers[2], numbers[3]},
                begin,
                now(),
                stream});
}

void Trace::add(const Entry &entry) {
  ring[used.fetch_add(1) % ring.size()] = entry;
}

Trace::~Trace() {
  if (on())
    write();
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

void Trace::writeTo(AtomicFile &file) const {
  file.write("{\"traceEvents\":[\n");
  for (int s = 0; s < kStreams; ++s)
    file.write(format("{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,"
                      "\"tid\":%d,\"args\":{\"name\":\"%s\"}},\n",
                      rank, s, streamName(Stream(s))));
  uint64_t total = used.load();
  uint64_t first = total > ring.size() ? total - ring.size() : 0;
  for (uint64_t i = first; i < total; ++i) {
    const Entry &e = ring[i % ring.size()];
    file.write("{\"ph\":\"X\",\"name\":" + quoted(e.name));
    file.write(format(",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,"
                      "\"args\":{\"sizes\":[%" PRId64 ",%" PRId64 ",%" PRId64
                      ",%" PRId64 "]}},\n",
                      rank, int(e.stream), double(e.begin) / 1e3,
                      double(e.end - e.begin) / 1e3, e.numbers[0], e.numbers[1],
                      e.numbers[2], e.numbers[3]));
  }
  file.write(format("{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
                    "\"args\":{\"name\":\"rank %d\"}}\n]}\n",
                    rank, rank));
}

void Trace::write() const {
  try {
    AtomicFile file(path);
    writeTo(file);
    file.commit();
  } catch (const Error &error) {
    // The run itself is good, and no cause of an end, which "fsdp:" begins.
    std::fprintf(stderr, "fsdp-run: warning: the trace is lost: %s\n",
                 error.what());
  }
}
