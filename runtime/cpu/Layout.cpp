//===- Layout.cpp - Operations that only move elements --------------------===//
#include "CpuContext.h"
#include "runtime/onednn/Parallel.h"
#include <algorithm>
#include <cstring>

using namespace fsdp::rt;

static constexpr int kMaxRank = 8;

namespace {
/// Dimensions of a permuting copy: sizes in the output's order with the
/// strides (in elements) of both sides.
struct Walk {
  int rank = 0;
  int64_t size[kMaxRank], in[kMaxRank], out[kMaxRank];
};
} // namespace

/// Rows of the two innermost loops of a permuting copy. Tiles of 16 x 16 use
/// every element of a cache line before it leaves the cache.
template <typename T>
static void copyPlane(const Walk &w, const T *in, T *out) {
  int a = w.rank - 2, b = w.rank - 1;
  constexpr int64_t tile = 16;
  for (int64_t i0 = 0; i0 < w.size[a]; i0 += tile)
    for (int64_t j0 = 0; j0 < w.size[b]; j0 += tile) {
      int64_t iEnd = std::min(i0 + tile, w.size[a]);
      int64_t jEnd = std::min(j0 + tile, w.size[b]);
      for (int64_t i = i0; i < iEnd; ++i)
        for (int64_t j = j0; j < jEnd; ++j)
          out[i * w.out[a] + j * w.out[b]] = in[i * w.in[a] + j * w.in[b]];
    }
}

/// Outer position `index`, counted in the output's order, as offsets.
static void offsets(const Walk &w, int outer, int64_t index, int64_t &in,
                    int64_t &out) {
  in = out = 0;
  for (int d = outer - 1; d >= 0; --d) {
    in += index % w.size[d] * w.in[d];
    out += index % w.size[d] * w.out[d];
    index /= w.size[d];
  }
}

template <typename T>
static void permute(CpuContext &c, const Walk &w, const T *in, T *out) {
  int64_t planes = 1;
  for (int d = 0; d < w.rank - 2; ++d)
    planes *= w.size[d];
  int64_t plane = w.size[w.rank - 2] * w.size[w.rank - 1];
  parallelFor(c.threads, planes, plane, 1,
              [&](int64_t begin, int64_t end, int) {
                for (int64_t p = begin; p < end; ++p) {
                  int64_t from, to;
                  offsets(w, w.rank - 2, p, from, to);
                  copyPlane(w, in + from, out + to);
                }
              });
}

/// Copies runs of `run` elements; everything outside them is walked.
static void copyRuns(CpuContext &c, const Walk &w, int64_t run, int64_t element,
                     const std::byte *in, std::byte *out) {
  int64_t count = 1;
  for (int d = 0; d < w.rank; ++d)
    count *= w.size[d];
  parallelFor(c.threads, count, run, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t from, to;
      offsets(w, w.rank, i, from, to);
      std::memcpy(out + to * element, in + from * element,
                  size_t(run * element));
    }
  });
}

static void rowMajorStrides(int rank, const int64_t *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int d = rank - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
}

/// Two dimensions that stay neighbours on both sides are one.
static void append(Walk &w, int64_t size, int64_t in, int64_t out) {
  int last = w.rank - 1;
  if (size == 1)
    return;
  if (w.rank > 0 && w.in[last] == size * in && w.out[last] == size * out) {
    w.size[last] *= size;
    w.in[last] = in;
    w.out[last] = out;
    return;
  }
  w.size[w.rank] = size;
  w.in[w.rank] = in;
  w.out[w.rank++] = out;
}

/// Runs the copy that `w` describes.
static void run(CpuContext &c, DType type, Walk w, Ptr in, Ptr out) {
  int64_t element = sizeOf(type);
  int last = w.rank - 1;
  if (w.rank == 0 || (w.in[last] == 1 && w.out[last] == 1)) {
    int64_t length = w.rank == 0 ? 1 : w.size[last];
    w.rank = std::max(last, 0);
    copyRuns(c, w, length, element, in, out);
    return;
  }
  if (w.rank == 1) {
    w.size[1] = w.size[0];
    w.in[1] = w.in[0];
    w.out[1] = w.out[0];
    w.size[0] = 1;
    w.in[0] = w.out[0] = 0;
    w.rank = 2;
  }
  // The plane of the transposition: the output's innermost dimension and the
  // one that is innermost in the input.
  int inner = int(std::min_element(w.in, w.in + w.rank) - w.in);
  if (inner < w.rank - 2) {
    std::swap(w.size[inner], w.size[w.rank - 2]);
    std::swap(w.in[inner], w.in[w.rank - 2]);
    std::swap(w.out[inner], w.out[w.rank - 2]);
  }
  switch (element) {
  case 1:
    return permute(c, w, reinterpret_cast<uint8_t *>(in),
                   reinterpret_cast<uint8_t *>(out));
  case 2:
    return permute(c, w, reinterpret_cast<uint16_t *>(in),
                   reinterpret_cast<uint16_t *>(out));
  case 4:
    return permute(c, w, reinterpret_cast<uint32_t *>(in),
                   reinterpret_cast<uint32_t *>(out));
  default:
    return permute(c, w, reinterpret_cast<uint64_t *>(in),
                   reinterpret_cast<uint64_t *>(out));
  }
}

static void requireRank(int rank) {
  if (rank > kMaxRank)
    abortWorld("copies of tensors of rank " + std::to_string(rank) +
               " are not supported; the limit is " + std::to_string(kMaxRank));
}

void fsdp::rt::transpose(Context &context, Stream stream, DType type, int rank,
                         const int64_t *shape, const int64_t *permutation,
                         Ptr in, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a transposition");
  requireRank(rank);
  int64_t inStrides[kMaxRank], outShape[kMaxRank], outStrides[kMaxRank];
  rowMajorStrides(rank, shape, inStrides);
  int64_t elements = 1;
  for (int d = 0; d < rank; ++d) {
    outShape[d] = shape[permutation[d]];
    elements *= shape[d];
  }
  Timeline::Span span(c.timeline, stream, "transpose", elements);
  rowMajorStrides(rank, outShape, outStrides);
  Walk w;
  for (int d = 0; d < rank; ++d)
    append(w, outShape[d], inStrides[permutation[d]], outStrides[d]);
  run(c, type, w, in, out);
}

void fsdp::rt::copyBox(Context &context, Stream stream, DType type, int rank,
                       const int64_t *shape, const int64_t *inShape,
                       const int64_t *inOffsets, const int64_t *outShape,
                       const int64_t *outOffsets, Ptr in, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a box copy");
  requireRank(rank);
  int64_t inStrides[kMaxRank], outStrides[kMaxRank];
  rowMajorStrides(rank, inShape, inStrides);
  rowMajorStrides(rank, outShape, outStrides);
  int64_t from = 0, to = 0, elements = 1;
  Walk w;
  for (int d = 0; d < rank; ++d) {
    from += inOffsets[d] * inStrides[d];
    to += outOffsets[d] * outStrides[d];
    elements *= shape[d];
    append(w, shape[d], inStrides[d], outStrides[d]);
  }
  Timeline::Span span(c.timeline, stream, "copy_box", elements);
  if (elements > 0)
    run(c, type, w, in + from * sizeOf(type), out + to * sizeOf(type));
}

void fsdp::rt::shardOf(Context &context, Stream stream, int group,
                       int64_t bytes, int64_t partBytes, Ptr in, Ptr out) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a part of a tensor");
  Timeline::Span span(c.timeline, stream, "shard_of", partBytes);
  Part part = pieceAt(bytes, partBytes, c.places[size_t(group)].index);
  parallelFor(
      c.threads, part.count, 1, 64, [=](int64_t begin, int64_t end, int) {
        std::memcpy(out + begin, in + part.offset + begin, size_t(end - begin));
      });
  std::memset(out + part.count, 0, size_t(partBytes - part.count));
}

void fsdp::rt::fillZero(Context &context, Stream stream, Ptr out,
                        int64_t bytes) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a fill");
  Timeline::Span span(c.timeline, stream, "fill_zero", bytes);
  parallelFor(c.threads, bytes, 1, 64, [=](int64_t begin, int64_t end, int) {
    std::memset(out + begin, 0, size_t(end - begin));
  });
}
