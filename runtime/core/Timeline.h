//===- Timeline.h - A timeline of every launch ------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CORE_TIMELINE_H
#define FSDP_RUNTIME_CORE_TIMELINE_H

#include "fsdp/Runtime/Types.h"
#include <atomic>
#include <string>
#include <vector>

namespace fsdp {
class AtomicFile;
} // namespace fsdp

namespace fsdp::rt {

/// Records spans in a preallocated ring and writes a Chrome trace, at the
/// latest at its end. Off, a span costs one test of a null pointer.
class Timeline {
public:
  /// By program, by call: what each is of, as people call it
  /// ("fwd layers.3.attention.wq linear"); empty where nobody knows.
  using CallNames = std::vector<std::vector<std::string>>;

  /// Switches recording on; spans beyond the ring overwrite the oldest.
  void enable(const std::string &path, int rank, CallNames names);
  ~Timeline();
  /// Writes what was recorded and switches recording off; no thread may record
  /// meanwhile. Throws fsdp::Error.
  void write();

  bool on() const { return !ring.empty(); }

  /// The track of steps and of the programs in them, after the streams'.
  static constexpr int kSteps = kStreams;

  /// What a launch was: sizes, and nanoseconds of the steady clock.
  struct Entry {
    const char *name;
    int64_t numbers[4];
    int64_t begin, end;
    int track;           // a stream, or kSteps
    const char *address; // of the call; null: none is known
  };
  /// Any thread may call it.
  void add(const Entry &entry);
  /// Step `number` of the run, from `begin` until now.
  void addStep(int64_t number, int64_t begin);

  /// What the calling thread issues: a program, and each call of Runtime.h in
  /// it; a call within another one is a part of it.
  void beginProgram(int program);
  void beginCall() { call += depth++ == 0 ? 1 : 0; }
  void endCall() { --depth; }
  /// Of the call at hand, or null.
  const char *address() const;

  /// One launch on one stream. Names must outlive the trace (literals and
  /// strings of the artifact do).
  class Span {
  public:
    Span(Timeline &timeline, Stream stream, const char *name, int64_t a = 0,
         int64_t b = 0, int64_t c = 0, int64_t d = 0);
    ~Span();
    Span(const Span &) = delete;
    Span &operator=(const Span &) = delete;

  private:
    Timeline *timeline;
    Stream stream;
    const char *name;
    // Set from arguments, whose defaults mislead the check.
    // NOLINTNEXTLINE(modernize-use-default-member-init)
    int64_t numbers[4];
    int64_t begin = 0;
  };

private:
  void writeTo(AtomicFile &file) const;

  std::vector<Entry> ring;
  std::atomic<uint64_t> used{0};
  std::string path;
  int rank = 0;
  CallNames names;
  int program = 0, depth = 0;
  int64_t call = -1; // of the program
};

/// What a trace calls a matmul: benchmarks repeat it alone from that and its
/// sizes.
const char *gemmName(const GemmDesc &desc);

/// What a person calls a stream.
const char *streamName(Stream stream);

/// Nanoseconds of the steady clock.
int64_t now();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CORE_TIMELINE_H
