//===- StreamWorker.cpp - Streams beside the compute stream ---------------===//
#include "StreamWorker.h"
#include "Channel.h"
#include "runtime/core/Timeline.h"
#include <algorithm>
#include <cstring>

using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Events
//===----------------------------------------------------------------------===//

void Events::create(int count) {
  issued.assign(size_t(count), 0);
  done.assign(size_t(count), 0);
}

void Events::complete(int event, uint64_t number) {
  {
    std::lock_guard<std::mutex> lock(mutex);
    done[size_t(event)] = number;
  }
  changed.notify_all();
}

void Events::wait(int event, uint64_t number) {
  std::unique_lock<std::mutex> lock(mutex);
  changed.wait(lock, [&] { return done[size_t(event)] >= number; });
}

//===----------------------------------------------------------------------===//
// StreamWorker
//===----------------------------------------------------------------------===//

StreamWorker::StreamWorker(Stream stream, Events &events, Timeline &timeline,
                           int maxPointers)
    : stream(stream), events(events), timeline(timeline), slots(kSlots) {
  for (Command &c : slots)
    c.pointers.resize(size_t(std::max(maxPointers, 2)));
  thread = std::thread([this] { loop(); });
}

StreamWorker::~StreamWorker() {
  beginIssue(Kind::Stop);
  endIssue();
  thread.join();
}

StreamWorker::Command &StreamWorker::beginIssue(Kind kind) {
  std::unique_lock<std::mutex> lock(mutex);
  executedOne.wait(lock, [&] { return tail - head < kSlots; });
  Command &c = slots[tail % kSlots];
  c.kind = kind;
  return c;
}

void StreamWorker::endIssue() {
  {
    std::lock_guard<std::mutex> lock(mutex);
    ++tail;
  }
  issuedOne.notify_one();
}

void StreamWorker::collective(Channel &channel, const CollectiveDesc &desc,
                              uint64_t counter, Ptrs in, Ptrs out,
                              Ptrs workspace) {
  Command &c = beginIssue(Kind::Collective);
  c.number = counter;
  c.channel = &channel;
  c.desc = &desc;
  Ptr *at = std::copy(in.begin(), in.end(), c.pointers.data());
  c.outAt = int(at - c.pointers.data());
  at = std::copy(out.begin(), out.end(), at);
  c.workspaceAt = int(at - c.pointers.data());
  std::copy(workspace.begin(), workspace.end(), at);
  endIssue();
}

void StreamWorker::copy(Ptr from, Ptr to, int64_t bytes) {
  Command &c = beginIssue(Kind::Copy);
  c.pointers[0] = from;
  c.pointers[1] = to;
  c.bytes = bytes;
  endIssue();
}

void StreamWorker::record(int event, uint64_t number) {
  Command &c = beginIssue(Kind::Record);
  c.event = event;
  c.number = number;
  endIssue();
}

void StreamWorker::wait(int event, uint64_t number) {
  Command &c = beginIssue(Kind::Wait);
  c.event = event;
  c.number = number;
  endIssue();
}

void StreamWorker::join() {
  std::unique_lock<std::mutex> lock(mutex);
  executedOne.wait(lock, [&] { return head == tail; });
}

void StreamWorker::loop() {
  for (;;) {
    Command *c;
    {
      std::unique_lock<std::mutex> lock(mutex);
      issuedOne.wait(lock, [&] { return head != tail; });
      c = &slots[head % kSlots];
    }
    bool stop = c->kind == Kind::Stop;
    execute(*c);
    {
      std::lock_guard<std::mutex> lock(mutex);
      ++head;
    }
    executedOne.notify_one();
    if (stop)
      return;
  }
}

void StreamWorker::execute(Command &c) {
  switch (c.kind) {
  case Kind::Collective: {
    Timeline::Span span(timeline, stream, c.desc->serves, c.desc->items);
    const Ptr *p = c.pointers.data();
    c.channel->run(*c.desc, c.number, p, p + c.outAt, p + c.workspaceAt);
    return;
  }
  case Kind::Copy: {
    Timeline::Span span(timeline, stream, "copy", c.bytes);
    std::memcpy(c.pointers[1], c.pointers[0], size_t(c.bytes));
    return;
  }
  case Kind::Record:
    events.complete(c.event, c.number);
    return;
  case Kind::Wait:
    events.wait(c.event, c.number);
    return;
  case Kind::Stop:
    return;
  }
}
