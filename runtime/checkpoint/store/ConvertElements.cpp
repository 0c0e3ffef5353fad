//===- ConvertElements.cpp - Elements of one type as another --------------===//
#include "ConvertElements.h"
#include "fsdp/Support/Half.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

bool checkpoint::isFloat(DType type) {
  return type == DType::F32 || type == DType::BF16 || type == DType::F16 ||
         type == DType::F64;
}

bool checkpoint::canBecome(DType from, DType to) {
  return from == to || to == DType::F64 || (isFloat(from) && isFloat(to));
}

namespace {

/// An element as files have it, and its value.
template <typename T> struct Plain {
  T stored;
  static Plain of(double value) { return {static_cast<T>(value)}; }
  T value() const { return stored; }
};
struct Half {
  uint16_t stored;
  static Half of(double value) {
    return {floatToF16(static_cast<float>(value))};
  }
  float value() const { return f16ToFloat(stored); }
};
struct BrainHalf {
  uint16_t stored;
  static BrainHalf of(double value) {
    return {floatToBF16(static_cast<float>(value))};
  }
  float value() const { return bf16ToFloat(stored); }
};

} // namespace

/// Calls `use` with an element of the type.
template <typename Use> static void withElement(DType type, Use use) {
  switch (type) {
  case DType::F32:
    return use(Plain<float>());
  case DType::BF16:
    return use(BrainHalf());
  case DType::F16:
    return use(Half());
  case DType::F64:
    return use(Plain<double>());
  case DType::I8:
    return use(Plain<int8_t>());
  case DType::I32:
    return use(Plain<int32_t>());
  case DType::I64:
    return use(Plain<int64_t>());
  }
}

double checkpoint::convertElements(DType from, const std::byte *in, DType to,
                                   std::byte *out, int64_t count) {
  double lost = 0;
  withElement(from, [=, &lost](auto source) {
    withElement(to, [=, &lost](auto target) mutable {
      for (int64_t i = 0; i < count; ++i) {
        std::memcpy(&source, in + i * sizeof source, sizeof source);
        auto value = static_cast<double>(source.value());
        target = decltype(target)::of(value);
        std::memcpy(out + i * sizeof target, &target, sizeof target);
        if (std::isinf(static_cast<double>(target.value())) &&
            !std::isinf(value))
          lost = std::max(lost, std::abs(value));
      }
    });
  });
  return lost;
}
