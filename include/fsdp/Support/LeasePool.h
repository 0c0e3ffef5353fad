//===- LeasePool.h - Memory for threads that do the same work ---*- C++ -*-===//
#ifndef FSDP_SUPPORT_LEASEPOOL_H
#define FSDP_SUPPORT_LEASEPOOL_H

#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace fsdp {

/// Each thread takes an object for itself and gives it back. One is made where
/// none is idle.
template <typename T> class LeasePool {
public:
  using Make = std::function<std::unique_ptr<T>()>;

  explicit LeasePool(Make make) : make(std::move(make)) {}

  /// An object that nobody else has while it lives.
  class Lease {
  public:
    explicit Lease(LeasePool &pool) : pool(pool), object(pool.take()) {}
    ~Lease() { pool.giveBack(std::move(object)); }
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;

    T &operator*() const { return *object; }
    T *operator->() const { return object.get(); }

  private:
    LeasePool &pool;
    std::unique_ptr<T> object;
  };

private:
  std::unique_ptr<T> take() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      if (!idle.empty()) {
        std::unique_ptr<T> object = std::move(idle.back());
        idle.pop_back();
        return object;
      }
    }
    return make();
  }

  void giveBack(std::unique_ptr<T> object) {
    std::lock_guard<std::mutex> lock(mutex);
    idle.push_back(std::move(object));
  }

  const Make make;
  std::mutex mutex;
  std::vector<std::unique_ptr<T>> idle;
};

} // namespace fsdp

#endif // FSDP_SUPPORT_LEASEPOOL_H
