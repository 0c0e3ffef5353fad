//===- Trace.h - A timeline of every launch ---------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_API_TRACE_H
#define FSDP_RUNTIME_API_TRACE_H

#include "fsdp/Runtime/Types.h"
#include <atomic>
#include <string>
#include <vector>

namespace fsdp {
class AtomicFile;
} // namespace fsdp

namespace fsdp::rt {

/// Records spans in a preallocated ring and writes a Chrome trace at the end.
/// Off, a span costs one test of a null pointer.
class Trace {
public:
  /// Switches recording on; spans beyond the ring overwrite the oldest.
  void enable(const std::string &path, int rank);
  ~Trace();

  bool on() const { return !ring.empty(); }

  /// What a launch was: sizes, and nanoseconds of the steady clock.
  struct Entry {
    const char *name;
    int64_t numbers[4];
    int64_t begin, end;
    Stream stream;
  };
  /// Any thread may call it.
  void add(const Entry &entry);

  /// One launch on one stream. Names must outlive the trace (literals and
  /// strings of the artifact do).
  class Span {
  public:
    Span(Trace &trace, Stream stream, const char *name, int64_t a = 0,
         int64_t b = 0, int64_t c = 0, int64_t d = 0);
    ~Span();
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

  private:
    Trace *trace;
    Stream stream;
    const char *name;
    // Set from arguments, whose defaults mislead the check.
    // NOLINTNEXTLINE(modernize-use-default-member-init)
    int64_t numbers[4];
    int64_t begin = 0;
  };

private:
  void write() const;
  void writeTo(AtomicFile &file) const;

  std::vector<Entry> ring;
  std::atomic<uint64_t> used{0};
  std::string path;
  int rank = 0;
};

/// The file of a rank's trace: PREFIX.<rank>.json of the option or, if that is
/// empty, of the environment's FSDP_TRACE. Empty: no trace is wanted.
std::string tracePath(const std::string &option, int rank);

/// What a trace calls a matmul: benchmarks repeat it alone from that and its
/// sizes.
const char *gemmName(const GemmDesc &desc);

/// What a person calls a stream.
const char *streamName(Stream stream);

/// Nanoseconds of the steady clock.
int64_t now();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_API_TRACE_H
