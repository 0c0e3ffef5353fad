//===- Timeline.cpp - When a GPU did what ---------------------------------===//
#include "Timeline.h"
#include "CudaContext.h"

using namespace fsdp;
using namespace fsdp::rt;

Timeline::Timeline(const std::string &file, int rank, Trace::CallNames names) {
  trace.enable(file, rank, std::move(names));
}

Timeline::~Timeline() {
  for (cudaEvent_t event : events)
    cudaEventDestroy(event);
}

size_t Timeline::mark(cudaStream_t stream) {
  if (used == events.size()) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "trace");
    events.push_back(event);
  }
  check(cudaEventRecord(events[used], stream), "trace");
  return used++;
}

void Timeline::beginProgram(cudaStream_t stream, int index, const char *name) {
  trace.beginProgram(index);
  program = name;
  launches.clear();
  used = 0;
  first = mark(stream);
}

void Timeline::endProgram(cudaStream_t stream) { last = mark(stream); }

void Timeline::collect() {
  // The host has just waited for the last event, so that one is now. Times
  // count from the first: floats of milliseconds are exact enough within a
  // program.
  auto sinceFirst = [this](size_t event) {
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, events[first], events[event]),
          "trace");
    return int64_t(double(milliseconds) * 1e6);
  };
  int64_t end = now(), begin = end - sinceFirst(last);
  for (Launch &launch : launches) {
    launch.entry.begin = begin + sinceFirst(launch.begin);
    launch.entry.end = begin + sinceFirst(launch.end);
    trace.add(launch.entry);
  }
  trace.add({program, {}, begin, end, Trace::kSteps, nullptr});
}

Timeline::Span::Span(Context &c, Stream stream, const char *name, int64_t a,
                     int64_t b, int64_t d, int64_t e)
    : c(c), stream(stream), isOn(c.timeline && !c.survey) {
  if (!isOn)
    return;
  Timeline &t = *c.timeline;
  launch = t.launches.size();
  t.launches.push_back(
      {{name, {a, b, d, e}, 0, 0, int(stream), t.trace.address()},
       t.mark(c.stream(stream)),
       0});
}

Timeline::Span::~Span() {
  if (isOn)
    c.timeline->launches[launch].end = c.timeline->mark(c.stream(stream));
}
