//===- Trace.cpp - A timeline of every launch -----------------------------===//
#include "Trace.h"
#include <chrono>
#include <cinttypes>
#include <cstdio>

using namespace fsdp::rt;

int64_t fsdp::rt::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
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
  if (!trace)
    return;
  uint64_t at = trace->used.fetch_add(1) % trace->ring.size();
  trace->ring[at] = {name,
                     {numbers[0], numbers[1], numbers[2], numbers[3]},
                     begin,
                     now(),
                     stream};
}

Trace::~Trace() {
  if (on())
    write();
}

/// Writes `text` as a JSON string; names come from user models.
static void writeString(std::FILE *f, const char *text) {
  std::fputc('"', f);
  for (const char *p = text; *p; ++p) {
    if (*p == '"' || *p == '\\')
      std::fputc('\\', f);
    if (static_cast<unsigned char>(*p) >= 0x20)
      std::fputc(*p, f);
  }
  std::fputc('"', f);
}

void Trace::write() const {
  std::FILE *f = std::fopen(path.c_str(), "w");
  if (!f) {
    std::fprintf(stderr, "fsdp: cannot write the trace %s\n", path.c_str());
    return;
  }
  static const char *const tracks[kStreams] = {"compute", "gather", "reduce",
                                               "copy"};
  std::fprintf(f, "{\"traceEvents\":[\n");
  for (int s = 0; s < kStreams; ++s)
    std::fprintf(f,
                 "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":%d,\"tid\":%d,"
                 "\"args\":{\"name\":\"%s\"}},\n",
                 rank, s, tracks[s]);
  uint64_t total = used.load();
  uint64_t first = total > ring.size() ? total - ring.size() : 0;
  for (uint64_t i = first; i < total; ++i) {
    const Entry &e = ring[i % ring.size()];
    std::fprintf(f, "{\"ph\":\"X\",\"name\":");
    writeString(f, e.name);
    std::fprintf(f,
                 ",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{"
                 "\"sizes\":[%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                 "]}},\n",
                 rank, int(e.stream), double(e.begin) / 1e3,
                 double(e.end - e.begin) / 1e3, e.numbers[0], e.numbers[1],
                 e.numbers[2], e.numbers[3]);
  }
  std::fprintf(f,
               "{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":%d,"
               "\"args\":{\"name\":\"rank %d\"}}\n]}\n",
               rank, rank);
  std::fclose(f);
}
