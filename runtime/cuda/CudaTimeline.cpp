//===- CudaTimeline.cpp - When a GPU did what -----------------------------===//
#include "CudaTimeline.h"
#include "CudaContext.h"

using namespace fsdp;
using namespace fsdp::rt;

CudaTimeline::CudaTimeline(const std::string &file, int rank,
                           Timeline::CallNames names) {
  timeline.enable(file, rank, std::move(names));
}

CudaTimeline::~CudaTimeline() {
  for (cudaEvent_t event : events)
    cudaEventDestroy(event);
}

size_t CudaTimeline::mark(cudaStream_t stream) {
  if (used == events.size()) {
    cudaEvent_t event = nullptr;
    check(cudaEventCreate(&event), "trace");
    events.push_back(event);
  }
  check(cudaEventRecord(events[used], stream), "trace");
  return used++;
}

void CudaTimeline::beginProgram(cudaStream_t stream, int index,
                                const char *name) {
  timeline.beginProgram(index);
  program = name;
  launches.clear();
  used = 0;
  first = mark(stream);
}

void CudaTimeline::endProgram(cudaStream_t stream) { last = mark(stream); }

void CudaTimeline::collect() {
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
    timeline.add(launch.entry);
  }
  timeline.add({program, {}, begin, end, Timeline::kSteps, nullptr});
}

CudaTimeline::Span::Span(CudaContext &c, Stream stream, const char *name,
                         int64_t a, int64_t b, int64_t d, int64_t e)
    : c(c), stream(stream), isOn(c.timeline && !c.survey) {
  if (!isOn)
    return;
  CudaTimeline &t = *c.timeline;
  launch = t.launches.size();
  t.launches.push_back(
      {{name, {a, b, d, e}, 0, 0, int(stream), t.timeline.address()},
       t.mark(c.stream(stream)),
       0});
}

CudaTimeline::Span::~Span() {
  if (isOn)
    c.timeline->launches[launch].end = c.timeline->mark(c.stream(stream));
}
