//===- ObservedCall.h - A call that somebody may look at --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CORE_OBSERVEDCALL_H
#define FSDP_RUNTIME_CORE_OBSERVEDCALL_H

namespace fsdp::rt {

class Context;

/// A call of Runtime.h while it lives; every function of it that issues work
/// has one. What the function calls itself is a part of its call. Where a
/// program is observed, the end of a call waits for all streams and tells of
/// it; else it is a test of a pointer.
class ObservedCall {
public:
  explicit ObservedCall(Context &context);
  ~ObservedCall();
  ObservedCall(const ObservedCall &) = delete;
  ObservedCall &operator=(const ObservedCall &) = delete;

private:
  Context &context;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CORE_OBSERVEDCALL_H
