//===- Layout.cu - Operations that only move elements ---------------------===//
#include "../Device.h"

using namespace fsdp::rt;
using namespace fsdp::rt::device;

static constexpr int kMaxRank = 8;

namespace fsdp::rt::device {

/// A permuting copy: sizes in the output's order, strides (in elements) and
/// first elements of both sides.
struct Walk {
  int rank = 0;
  int64_t elements = 1, inFirst = 0, outFirst = 0;
  int64_t size[kMaxRank], in[kMaxRank], out[kMaxRank];
};

/// Elements of 16 bytes.
using Words = gpu::Vector<uint32_t, 4>;

FSDP_DEVICE void copyElement(const Words *in, Words *out) {
  gpu::store(out->at, gpu::load<4>(in->at));
}
template <typename T> FSDP_DEVICE void copyElement(const T *in, T *out) {
  *out = *in;
}

template <typename T>
__global__ void copyElements(Walk w, const T *in, T *out) {
  gpu::elements(w.elements, 1, [&](int64_t index, int64_t) {
    int64_t from = w.inFirst, to = w.outFirst;
    for (int d = w.rank - 1; d >= 0; --d) {
      const int64_t rest = gpu::quotient(index, w.size[d]);
      const int64_t place = index - rest * w.size[d];
      from += place * w.in[d];
      to += place * w.out[d];
      index = rest;
    }
    copyElement(in + from, out + to);
  });
}

} // namespace fsdp::rt::device

template <typename T>
static void run(Context &c, Stream s, const char *name, const Walk &w, Ptr in,
                Ptr out) {
  gpu::startWith(c, s, name, copyElements<T>, gpu::elementsShape(w.elements), w,
                 as<T>(in), as<T>(out));
}

/// Turns a copy of elements of `width` bytes into one of 16 bytes each, if on
/// both sides they are neighbours in whole vectors.
static bool inWords(Walk &w, int64_t width, Ptr in, Ptr out) {
  const int last = w.rank - 1;
  if (last < 0 || w.in[last] != 1 || w.out[last] != 1 ||
      !areWholeVectors(0, in, out))
    return false;
  Walk words = w;
  const int64_t each = int64_t(sizeof(Words)) / width;
  bool whole = true;
  auto divide = [&](int64_t &number) {
    whole &= number % each == 0;
    number /= each;
  };
  divide(words.size[last]);
  divide(words.elements);
  divide(words.inFirst);
  divide(words.outFirst);
  for (int d = 0; d < last; ++d) {
    divide(words.in[d]);
    divide(words.out[d]);
  }
  if (whole)
    w = words;
  return whole;
}

static void run(Context &c, Stream s, const char *name, DType type, Walk w,
                Ptr in, Ptr out) {
  if (w.elements == 0)
    return;
  if (inWords(w, sizeOf(type), in, out))
    return run<Words>(c, s, name, w, in, out);
  switch (sizeOf(type)) {
  case 1:
    return run<uint8_t>(c, s, name, w, in, out);
  case 2:
    return run<uint16_t>(c, s, name, w, in, out);
  case 4:
    return run<uint32_t>(c, s, name, w, in, out);
  default:
    return run<uint64_t>(c, s, name, w, in, out);
  }
}

static void rowMajorStrides(int rank, const int64_t *shape, int64_t *strides) {
  if (rank > kMaxRank)
    abortWorld("copies of tensors of rank " + std::to_string(rank) +
                   " are not supported; the limit is " +
                   std::to_string(kMaxRank),
               1);
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
}

void fsdp::rt::transpose(Context &c, Stream stream, DType type, int rank,
                         const int64_t *shape, const int64_t *permutation,
                         Ptr in, Ptr out) {
  ObservedCall call(c);
  int64_t inStrides[kMaxRank];
  rowMajorStrides(rank, shape, inStrides);
  Walk w;
  w.rank = rank;
  for (int d = 0; d < rank; ++d) {
    w.size[d] = shape[permutation[d]];
    w.in[d] = inStrides[permutation[d]];
    w.elements *= shape[d];
  }
  rowMajorStrides(rank, w.size, w.out);
  run(c, stream, "transpose", type, w, in, out);
}

void fsdp::rt::copyBox(Context &c, Stream stream, DType type, int rank,
                       const int64_t *shape, const int64_t *inShape,
                       const int64_t *inOffsets, const int64_t *outShape,
                       const int64_t *outOffsets, Ptr in, Ptr out) {
  ObservedCall call(c);
  Walk w;
  w.rank = rank;
  rowMajorStrides(rank, inShape, w.in);
  rowMajorStrides(rank, outShape, w.out);
  for (int d = 0; d < rank; ++d) {
    w.size[d] = shape[d];
    w.inFirst += inOffsets[d] * w.in[d];
    w.outFirst += outOffsets[d] * w.out[d];
    w.elements *= shape[d];
  }
  run(c, stream, "copy_box", type, w, in, out);
}
