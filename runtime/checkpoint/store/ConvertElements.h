//===- ConvertElements.h - Elements of one type as another ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_CONVERTELEMENTS_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_CONVERTELEMENTS_H

#include "TensorStore.h"

namespace fsdp::checkpoint {

/// Floating-point types (isFloat) become each other, and every type becomes
/// F64, for who compares values.
bool canBecome(rt::DType from, rt::DType to);

/// Converts `count` elements that lie anywhere; rounds to the nearest even,
/// from F64 to 16 bits by way of F32. Returns the largest magnitude of a finite
/// value that became infinite; 0: there is none.
double convertElements(rt::DType from, const std::byte *in, rt::DType to,
                       std::byte *out, int64_t count);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_CONVERTELEMENTS_H
