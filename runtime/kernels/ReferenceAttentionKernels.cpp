//===- ReferenceAttentionKernels.cpp - Rows of reference attention --------===//
#include "Isa.h"
#include "ReferenceAttentionRows.h"

using namespace fsdp::rt;

namespace {

template <typename T>
void forward(const reference::Shape &s, const reference::Tensors<T> &t,
             int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    reference::forwardRow(s, t, row);
}

template <typename T>
void queryGrads(const reference::Shape &s, const reference::Tensors<T> &t,
                int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    reference::queryGradRow(s, t, row);
}

template <typename T>
void keyGrads(const reference::Shape &s, const reference::Tensors<T> &t,
              int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    reference::keyGradRow(s, t, row);
}

} // namespace

void fsdp::rt::FSDP_ISA::addReferenceAttentionKernels(Kernels &k) {
  k.referenceF32 = {forward<float>, queryGrads<float>, keyGrads<float>};
  k.referenceBF16 = {forward<BF16>, queryGrads<BF16>, keyGrads<BF16>};
}
