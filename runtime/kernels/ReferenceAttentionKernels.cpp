//===- PlainAttentionKernels.cpp - Rows of plain attention ----------------===//
#include "Isa.h"
#include "PlainAttentionRows.h"

using namespace fsdp::rt;

namespace {

template <typename T>
void forward(const plain::Shape &s, const plain::Tensors<T> &t, int64_t begin,
             int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    plain::forwardRow(s, t, row);
}

template <typename T>
void queryGrads(const plain::Shape &s, const plain::Tensors<T> &t,
                int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    plain::queryGradRow(s, t, row);
}

template <typename T>
void keyGrads(const plain::Shape &s, const plain::Tensors<T> &t, int64_t begin,
              int64_t end) {
  for (int64_t row = begin; row < end; ++row)
    plain::keyGradRow(s, t, row);
}

} // namespace

void fsdp::rt::FSDP_ISA::addPlainAttentionKernels(Kernels &k) {
  k.plainF32 = {forward<float>, queryGrads<float>, keyGrads<float>};
  k.plainBF16 = {forward<BF16>, queryGrads<BF16>, keyGrads<BF16>};
}
