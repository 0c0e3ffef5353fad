//===- Measure.cpp - What is measured -------------------------------------===//
#include "Measure.h"
#include "ProbeKernels.h"
#include "fsdp/Target/CpuWorkspaces.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

// Shares of the time; what slows what takes the rest.
static constexpr double kProductShare = 0.55, kAttentionShare = 0.1,
                        kKernelShare = 0.1, kCollectiveShare = 0.1,
                        kTogetherShare = 0.1;

static constexpr MathType kTypes[] = {MathType::F32, MathType::BF16};

/// Calls of what is measured: one to warm up, one that says how many follow,
/// and these at least.
static constexpr double kFewestCalls = 4;
/// What the slowest core does: operations, and bytes of a kernel. Only what is
/// left out depends on them.
static constexpr double kSlowFlops = 3e10, kSlowBytes = 2e9;

/// Whether a kernel or collective of so many bytes can be measured in `limit`
/// seconds. The small ones always are.
static bool fits(int64_t bytes, double limit) {
  return bytes <= 1 << 16 || kFewestCalls * double(bytes) / kSlowBytes < limit;
}

static DType typeOf(MathType type) {
  return type == MathType::F32 ? DType::F32 : DType::BF16;
}

//===----------------------------------------------------------------------===//
// What there is to measure
//===----------------------------------------------------------------------===//

void Measurements::take(const Bench::Sizes &bytes) {
  largest.in = std::max(largest.in, bytes.in);
  largest.out = std::max(largest.out, bytes.out);
  largest.workspace = std::max(largest.workspace, bytes.workspace);
  largest.exchanged = std::max(largest.exchanged, bytes.exchanged);
}

void Measurements::addProduct(MathType type, Layout layout,
                              const std::array<int64_t, 3> &sizes) {
  for (const ProductCall &known : products)
    if (known.type == type && known.layout == layout && known.sizes == sizes)
      return;
  auto [m, n, k] = sizes;
  GemmDesc desc{};
  desc.batch = 1;
  desc.m = m;
  desc.n = n;
  desc.k = k;
  desc.transposeLhs = layout == Layout::TN || layout == Layout::TT;
  desc.transposeRhs = layout == Layout::NT || layout == Layout::TT;
  desc.in = desc.out = typeOf(type);
  int64_t element = sizeOf(desc.in);
  Bench::Sizes bytes = {
      alignedBytes(m * k * element) + alignedBytes(k * n * element),
      m * n * element, gemmWorkspaceBytes(desc, calibration.threads)};
  if (bytes.workspace < 0)
    return;
  take(bytes);
  products.push_back({type, layout, sizes, bench.add(desc), bytes});
}

void Measurements::addAttention(MathType type,
                                const std::array<int64_t, 3> &sizes) {
  auto [queries, keys, dim] = sizes;
  for (const AttentionCall &known : attentions)
    if (known.type == type && known.desc.qLen == queries &&
        known.desc.kvLen == keys && known.desc.headDim == dim)
      return;
  AttentionDesc desc{};
  desc.batch = 2;
  desc.heads = desc.kvHeads = 8;
  desc.qLen = queries;
  desc.kvLen = keys;
  desc.headDim = dim;
  desc.scale = 0.125;
  desc.causal = queries == keys;
  desc.type = typeOf(type);
  AttentionCall call{};
  call.type = type;
  call.desc = desc;
  int64_t row = desc.batch * desc.heads * dim * sizeOf(desc.type);
  call.queryBytes = alignedBytes(queries * row);
  call.keyBytes = alignedBytes(keys * row);
  call.lseBytes = alignedBytes(desc.batch * desc.heads * queries * 4);
  int64_t forward = cpu::attentionWorkspaceBytes(desc, calibration.threads);
  int64_t backward =
      cpu::attentionGradWorkspaceBytes(desc, calibration.threads);
  if (forward < 0 || backward < 0)
    return;
  call.bytes = {3 * call.queryBytes + 2 * call.keyBytes + call.lseBytes,
                2 * call.queryBytes + 2 * call.keyBytes + call.lseBytes,
                std::max(forward, backward)};
  take(call.bytes);
  call.attention = bench.add(desc);
  attentions.push_back(call);
}

void Measurements::addCollectives() {
  double limit = calibration.seconds * kCollectiveShare / 10;
  for (int size = 2; size <= bench.ranks(); ++size)
    for (CollectiveKind kind :
         {CollectiveKind::AllGather, CollectiveKind::ReduceScatter,
          CollectiveKind::AllReduce})
      for (int64_t bytes = 1 << 11; bytes <= 1 << 26; bytes *= 8) {
        if (bench.ranks() % size != 0 || !fits(bytes, limit))
          continue;
        bool isGather = kind == CollectiveKind::AllGather;
        Bench::Sizes sizes = {
            isGather ? bytes / size : bytes,
            kind == CollectiveKind::ReduceScatter ? bytes / size : bytes, 0,
            isGather ? 0 : (bytes + 4096) * size};
        take(sizes);
        collectives.push_back({kind, size, bytes,
                               bench.add(kind, ReduceKind::Sum, bytes, size),
                               sizes});
      }
}

/// Sizes of a table's matmuls, of which all types and layouts are measured in
/// so many seconds.
static std::vector<std::array<int64_t, 3>> commonSizes(double seconds) {
  constexpr int64_t sizes[] = {128, 512, 2048, 8192};
  std::vector<std::array<int64_t, 3>> all;
  for (int64_t m : sizes)
    for (int64_t n : sizes)
      for (int64_t k : sizes)
        all.push_back({m, n, k});
  auto volume = [](const std::array<int64_t, 3> &size) {
    return double(size[0]) * double(size[1]) * double(size[2]);
  };
  std::stable_sort(all.begin(), all.end(), [&](const auto &a, const auto &b) {
    return volume(a) < volume(b);
  });
  size_t count = 0;
  for (double left = seconds; count < all.size(); ++count) {
    left -= 6 * kFewestCalls * 2 * volume(all[count]) / kSlowFlops;
    if (left < 0)
      break;
  }
  all.resize(std::max<size_t>(count, 1));
  return all;
}

Measurements::Measurements(const Calibration &calibration)
    : calibration(calibration), bench(calibration.threads) {
  for (MathType type : kTypes) {
    for (Layout layout : {Layout::NN, Layout::NT, Layout::TN})
      for (const auto &sizes : commonSizes(calibration.seconds * kProductShare))
        addProduct(type, layout, sizes);
    for (int64_t length : {128, 512, 2048})
      if (length == 128 || calibration.seconds >= 10)
        addAttention(type, {length, length, 64});
  }
  for (const CalibratedShape &shape : calibration.shapes)
    if (shape.kind == CalibratedShape::Product)
      addProduct(shape.type, shape.layout, shape.sizes);
    else
      addAttention(shape.type, shape.sizes);
  addCollectives();
  take({kMostProbeBytes, kMostProbeBytes, 0});
  bench.open(largest);
}

void Measurements::measure(Machine &machine) {
  measureProducts(machine);
  measureAttention(machine);
  measureKernels(machine);
  measureCollectives(machine);
}

//===----------------------------------------------------------------------===//
// Libraries
//===----------------------------------------------------------------------===//

void Measurements::call(Context &c, const ProductCall &product,
                        int64_t number) {
  Bench::Place place = bench.place(product.bytes, number);
  auto [m, n, k] = product.sizes;
  Ptr rhs = place.in + alignedBytes(m * k * sizeOf(typeOf(product.type)));
  gemm(c, Stream::Compute, product.gemm, place.in, rhs, nullptr, place.out,
       place.workspace);
}

/// The list of a type and a layout, or of a type and a pass, a new one if it
/// is not there.
template <typename T, typename Choice>
static Machine::Rates &ratesOf(std::vector<T> &all, MathType type,
                               Choice T::*member, Choice choice) {
  for (T &each : all)
    if (each.type == type && each.*member == choice)
      return each.rates;
  all.emplace_back();
  all.back().type = type;
  all.back().*member = choice;
  return all.back().rates;
}

template <typename Sizes>
static Machine::Rate rateOf(const Sizes &sizes, double flops, double seconds) {
  return {{double(sizes[0]), double(sizes[1]), double(sizes[2])},
          roundedValue(flops / seconds)};
}

void Measurements::measureProducts(Machine &machine) {
  double limit = calibration.seconds * kProductShare / double(products.size());
  for (const ProductCall &product : products) {
    auto [m, n, k] = product.sizes;
    double seconds = bench.computeSeconds(
        limit, [&](Context &c, int64_t number) { call(c, product, number); });
    ratesOf(machine.products, product.type, &Machine::Product::layout,
            product.layout)
        .push_back(rateOf(product.sizes,
                          2.0 * double(m) * double(n) * double(k), seconds));
  }
}

void Measurements::measureAttention(Machine &machine) {
  double limit =
      calibration.seconds * kAttentionShare / double(2 * attentions.size());
  for (const AttentionCall &attention : attentions) {
    const AttentionDesc &d = attention.desc;
    auto pointers = [&](int64_t number) {
      Bench::Place place = bench.place(attention.bytes, number);
      // q, dout, k, v, out and then what is written.
      Ptr q = place.in, dout = q + attention.queryBytes,
          out = dout + attention.queryBytes, k = out + attention.queryBytes,
          v = k + attention.keyBytes, lse = v + attention.keyBytes;
      Ptr dq = place.out, written = dq + attention.queryBytes,
          dk = written + attention.queryBytes, dv = dk + attention.keyBytes,
          newLse = dv + attention.keyBytes;
      return std::array<Ptr, 12>{q,       dout, out,    k,
                                 v,       lse,  dq,     dk,
                                 written, dv,   newLse, place.workspace};
    };
    double flops = 4.0 * double(d.batch * d.heads) * double(d.qLen) *
                   double(d.kvLen) * double(d.headDim) * (d.causal ? 0.5 : 1);
    std::array<int64_t, 3> sizes = {d.qLen, d.kvLen, d.headDim};
    double forward =
        bench.computeSeconds(limit, [&](Context &c, int64_t number) {
          auto [q, dout, out, k, v, lse, dq, dk, written, dv, newLse,
                workspace] = pointers(number);
          rt::attention(c, Stream::Compute, attention.attention, q, k, v,
                        /*starts=*/nullptr, written, newLse, workspace);
        });
    double backward =
        bench.computeSeconds(limit, [&](Context &c, int64_t number) {
          auto [q, dout, out, k, v, lse, dq, dk, written, dv, newLse,
                workspace] = pointers(number);
          attentionGrad(c, Stream::Compute, attention.attention, q, k, v, out,
                        lse, dout, /*starts=*/nullptr, dq, dk, dv, workspace);
        });
    ratesOf(machine.attentions, attention.type, &Machine::AttentionRates::pass,
            AttentionPass::Forward)
        .push_back(rateOf(sizes, flops, forward));
    ratesOf(machine.attentions, attention.type, &Machine::AttentionRates::pass,
            AttentionPass::Backward)
        .push_back(rateOf(sizes, 2.5 * flops, backward));
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void Measurements::measureKernels(Machine &machine) {
  const ProbeKernel *probes = probeKernels();
  double limit = calibration.seconds * kKernelShare / (kProbeKernels * 7);
  for (int i = 0; i < kProbeKernels; ++i) {
    const ProbeKernel &probe = probes[i];
    Machine::Kernel kernel;
    kernel.name = probe.name;
    for (int64_t bytes = 1 << 14;
         bytes <= kMostProbeBytes && fits(bytes, 4 * limit); bytes *= 4) {
      int64_t count = bytes / probe.bytesPerElement;
      Bench::Sizes sizes = {bytes, bytes, 0};
      double seconds =
          bench.computeSeconds(limit, [&](Context &c, int64_t number) {
            Bench::Place place = bench.place(sizes, number);
            probe.run(c, count, place.in, place.out);
          });
      kernel.points.emplace_back(double(count * probe.bytesPerElement),
                                 std::max(roundedValue(seconds), 1e-9));
    }
    machine.kernels.push_back(kernel);
  }
  double seconds = bench.computeSeconds(limit, [&](Context &c, int64_t number) {
    Bench::Place place = bench.place({64, 64, 0}, number);
    probes[0].run(c, 16, place.in, place.out);
  });
  machine.launch.kernelSeconds = roundedValue(seconds);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

static Stream streamOf(CollectiveKind kind) {
  return kind == CollectiveKind::AllGather ? Stream::Gather : Stream::Reduce;
}

void Measurements::call(Context &c, const CollectiveCall &collective,
                        int64_t number) {
  Bench::Place place = bench.place(collective.sizes, number);
  rt::collective(c, streamOf(collective.kind), collective.collective,
                 {place.in}, {place.out}, {place.exchanged});
}

void Measurements::measureCollectives(Machine &machine) {
  double limit =
      calibration.seconds * kCollectiveShare / double(collectives.size());
  for (const CollectiveCall &collective : collectives) {
    double seconds =
        bench.collectiveSeconds(limit, [&](Context &c, int64_t number) {
          call(c, collective, number);
          record(c, 0, streamOf(collective.kind));
          wait(c, 0, Stream::Compute);
        });
    Machine::Curve *curve = nullptr;
    for (Machine::Curve &known : machine.curves)
      if (known.collective == collective.kind &&
          known.shape.ranksPerNode == collective.group)
        curve = &known;
    if (!curve) {
      curve = &machine.curves.emplace_back();
      curve->collective = collective.kind;
      curve->sums = collective.kind == CollectiveKind::AllGather ? Sums::Fast
                                                                 : Sums::Exact;
      curve->shape.ranksPerNode = collective.group;
    }
    curve->points.emplace_back(double(collective.bytes),
                               std::max(roundedValue(seconds), 1e-9));
  }
  if (collectives.empty())
    return;
  Together gather = besideCompute(CollectiveKind::AllGather);
  Together reduce = besideCompute(CollectiveKind::ReduceScatter);
  machine.slowdown.gather = roundedValue(gather.compute);
  machine.slowdown.reduce = roundedValue(reduce.compute);
  machine.slowdown.collective =
      roundedValue((gather.collective + reduce.collective) / 2);
}

/// The largest of a kind over all ranks.
template <typename Calls>
static const auto &largestOf(const Calls &calls, CollectiveKind kind,
                             int ranks) {
  const auto *found = &calls.front();
  for (const auto &call : calls)
    if (call.kind == kind && call.group == ranks)
      found = &call;
  return *found;
}

Measurements::Together Measurements::besideCompute(CollectiveKind kind) {
  const CollectiveCall &collective =
      largestOf(collectives, kind, bench.ranks());
  // One that takes milliseconds.
  const ProductCall *product = &products.front();
  for (const ProductCall &each : products)
    if (double(each.sizes[0]) * double(each.sizes[1]) * double(each.sizes[2]) >=
        1e8) {
      product = &each;
      break;
    }
  double limit = calibration.seconds * kTogetherShare / 20;
  auto alone = [&](Context &c, int64_t number) { call(c, *product, number); };
  double computeAlone = bench.computeSeconds(limit, alone);
  // The least of several: other programs only ever add.
  double moveAlone = 1e9, took = 1e9, computed = 0;
  auto moves = int64_t(0);
  for (int round = 0; round < 3; ++round) {
    double seconds =
        runMoves(collective, std::max<int64_t>(moves, 2), nullptr).first;
    moveAlone =
        std::min(moveAlone, seconds / double(std::max<int64_t>(moves, 2)));
    moves = std::clamp<int64_t>(int64_t(limit / bench.mean(moveAlone)), 2, 200);
  }
  for (int round = 0; round < 3; ++round) {
    auto [seconds, products] = runMoves(collective, moves, product);
    if (seconds < took)
      computed = products;
    took = std::min(took, seconds);
  }
  // The last product ran on for half of its time on average.
  took -= computeAlone / 2;
  double pace = std::max(computed - 0.5, 0.1) * computeAlone / took;
  constexpr double most = 100; // of a machine file
  return {std::clamp(bench.mean(1 / pace) - 1, 0.0, most),
          std::clamp(bench.mean(took / (double(moves) * moveAlone)) - 1, 0.0,
                     most)};
}

std::pair<double, double>
Measurements::runMoves(const CollectiveCall &collective, int64_t moves,
                       const ProductCall *product) {
  Stream stream = streamOf(collective.kind);
  double took = 0, computed = 0;
  bench.run([&](Context &c) {
    // The stream says that it is done by a byte that it copies.
    auto [one, flag] = bench.flags();
    volatile std::byte *done = flag;
    *one = std::byte(1);
    *done = std::byte(0);
    barrier();
    double begin = nowInSeconds();
    for (int64_t i = 0; i < moves; ++i)
      call(c, collective, i);
    copy(c, stream, one, flag, 1);
    record(c, 0, stream);
    if (!product)
      wait(c, 0, Stream::Compute);
    while (*done != std::byte(1)) {
      call(c, *product, int64_t(computed));
      computed += 1;
    }
    took = nowInSeconds() - begin;
  });
  return {took, computed};
}
