//===- Measure.h - What is measured -----------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CALIBRATE_MEASURE_H
#define FSDP_RUNTIME_CALIBRATE_MEASURE_H

#include "Bench.h"
#include "Calibrate.h"

namespace fsdp::rt {

/// Four digits of it.
double roundedValue(double value);

/// All measurements of one calibration. Whatever a method measures it writes
/// into the machine.
class Measurements {
public:
  explicit Measurements(const Calibration &calibration);
  void measure(Machine &machine);

private:
  struct ProductCall {
    MathType type;
    Layout layout;
    std::array<int64_t, 3> sizes;
    int gemm;
    Bench::Sizes bytes;
  };
  struct AttentionCall {
    MathType type;
    AttentionDesc desc;
    int attention;
    int64_t queryBytes, keyBytes, lseBytes;
    Bench::Sizes bytes;
  };
  struct CollectiveCall {
    CollectiveKind kind;
    int group;
    int64_t bytes;
    int collective;
    Bench::Sizes sizes;
  };

  void addProduct(MathType type, Layout layout,
                  const std::array<int64_t, 3> &sizes);
  void addAttention(MathType type, const std::array<int64_t, 3> &sizes);
  void addCollectives();
  void take(const Bench::Sizes &bytes);

  void measureProducts(Machine &machine);
  void measureAttention(Machine &machine);
  void measureKernels(Machine &machine);
  void measureCollectives(Machine &machine);
  /// How much compute and a collective of this kind slow each other.
  struct Together {
    double compute = 0, collective = 0;
  };
  Together besideCompute(CollectiveKind kind);
  /// Seconds of so many collectives, and how often `product` was called
  /// meanwhile; null: nothing is.
  std::pair<double, double> runMoves(const CollectiveCall &collective,
                                     int64_t moves, const ProductCall *product);

  void call(Context &c, const ProductCall &product, int64_t number);
  void call(Context &c, const CollectiveCall &collective, int64_t number);

  const Calibration &calibration;
  Bench bench;
  Bench::Sizes largest;
  std::vector<ProductCall> products;
  std::vector<AttentionCall> attentions;
  std::vector<CollectiveCall> collectives;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CALIBRATE_MEASURE_H
