//===- Layers.cpp - Matmuls, norms, attention, losses ---------------------===//
#include "Formulas.h"
#include "llvm/ADT/Sequence.h"
#include <cmath>
#include <limits>

namespace fsdp::interpret {

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

DenseTensor linear(const Tensors &in) {
  const DenseTensor &x = in[0], &w = in[1];
  int64_t inner = w.shape[1], outer = w.shape[0], rows = x.size() / inner;
  std::vector<int64_t> shape = x.shape;
  shape.back() = outer;
  DenseTensor y = DenseTensor::full(shape);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < outer; ++o) {
      double sum = in.size() > 2 ? in[2].values[o] : 0;
      for (int64_t i = 0; i < inner; ++i)
        sum += x.values[r * inner + i] * w.values[o * inner + i];
      y.values[r * outer + o] = sum;
    }
  return y;
}

// Operands: dy, w.
DenseTensor linearInputGrad(const Tensors &in) {
  const DenseTensor &dy = in[0], &w = in[1];
  int64_t outer = w.shape[0], inner = w.shape[1], rows = dy.size() / outer;
  std::vector<int64_t> shape = dy.shape;
  shape.back() = inner;
  DenseTensor dx = DenseTensor::full(shape);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        dx.values[r * inner + i] +=
            dy.values[r * outer + o] * w.values[o * inner + i];
  return dx;
}

// Operands: dy, x and, where there is one, the sum so far.
DenseTensor linearWeightGrad(const Tensors &in) {
  const DenseTensor &dy = in[0], &x = in[1];
  int64_t outer = dy.shape.back(), inner = x.shape.back();
  int64_t rows = dy.size() / outer;
  DenseTensor dw = in.size() > 2 ? in[2] : DenseTensor::full({outer, inner});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t o = 0; o < outer; ++o)
      for (int64_t i = 0; i < inner; ++i)
        dw.values[o * inner + i] +=
            dy.values[r * outer + o] * x.values[r * inner + i];
  return dw;
}

DenseTensor matmul(const DenseTensor &lhs, const DenseTensor &rhs,
                   bool transposeLhs, bool transposeRhs) {
  int64_t rank = lhs.rank();
  int64_t m = lhs.shape[rank - (transposeLhs ? 1 : 2)];
  int64_t k = lhs.shape[rank - (transposeLhs ? 2 : 1)];
  int64_t n = rhs.shape[rank - (transposeRhs ? 2 : 1)];
  std::vector<int64_t> shape = lhs.shape;
  shape[rank - 2] = m;
  shape[rank - 1] = n;
  DenseTensor c = DenseTensor::full(shape);
  int64_t batches = lhs.size() / std::max<int64_t>(m * k, 1);
  for (int64_t batch = 0; batch < batches; ++batch) {
    const double *a = lhs.values.data() + batch * m * k;
    const double *b = rhs.values.data() + batch * k * n;
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t l = 0; l < k; ++l)
          sum += a[transposeLhs ? l * m + i : i * k + l] *
                 b[transposeRhs ? j * k + l : l * n + j];
        c.values[(batch * m + i) * n + j] = sum;
      }
  }
  return c;
}

//===----------------------------------------------------------------------===//
// Norms and softmax, over the rows of the last dimension
//===----------------------------------------------------------------------===//

/// One value per row of `x`.
static DenseTensor rowStatistic(const DenseTensor &x) {
  return DenseTensor::full({x.shape.begin(), x.shape.end() - 1});
}

/// Calls `visit(row, first element of the row)` for each row of `x`.
template <typename Visit>
static void forEachRow(const DenseTensor &x, Visit visit) {
  int64_t cols = x.shape.back();
  for (int64_t row = 0; row * cols < x.size(); ++row)
    visit(row, row * cols);
}

/// Mean over the columns of `term(column)`.
template <typename Term> static double meanOf(int64_t cols, Term term) {
  double sum = 0;
  for (int64_t c = 0; c < cols; ++c)
    sum += term(c);
  return sum / cols;
}

Tensors rmsNorm(const Tensors &in, double eps, bool plusOne) {
  const DenseTensor &x = in[0], &w = in[1];
  DenseTensor y = DenseTensor::full(x.shape), rstd = rowStatistic(x);
  int64_t cols = x.shape.back();
  forEachRow(x, [&](int64_t row, int64_t base) {
    double square = meanOf(cols, [&](int64_t c) {
      return x.values[base + c] * x.values[base + c];
    });
    rstd.values[row] = 1 / std::sqrt(square + eps);
    for (int64_t c = 0; c < cols; ++c)
      y.values[base + c] =
          x.values[base + c] * rstd.values[row] * (w.values[c] + plusOne);
  });
  return {y, rstd};
}

// Operands: x, w, rstd, dy.
DenseTensor rmsNormInputGrad(const Tensors &in, bool plusOne) {
  const DenseTensor &x = in[0], &w = in[1], &rstd = in[2], &dy = in[3];
  DenseTensor dx = DenseTensor::full(x.shape);
  int64_t cols = x.shape.back();
  forEachRow(x, [&](int64_t row, int64_t base) {
    double r = rstd.values[row];
    double mean = meanOf(cols, [&](int64_t c) {
      return (w.values[c] + plusOne) * dy.values[base + c] * x.values[base + c];
    });
    for (int64_t c = 0; c < cols; ++c)
      dx.values[base + c] = r * ((w.values[c] + plusOne) * dy.values[base + c] -
                                 x.values[base + c] * r * r * mean);
  });
  return dx;
}

// Operands: x, rstd, dy.
DenseTensor rmsNormWeightGrad(const Tensors &in) {
  const DenseTensor &x = in[0], &rstd = in[1], &dy = in[2];
  int64_t cols = x.shape.back();
  DenseTensor dw = DenseTensor::full({cols});
  forEachRow(x, [&](int64_t row, int64_t base) {
    for (int64_t c = 0; c < cols; ++c)
      dw.values[c] +=
          dy.values[base + c] * x.values[base + c] * rstd.values[row];
  });
  return dw;
}

Tensors layerNorm(const Tensors &in, double eps) {
  const DenseTensor &x = in[0], &w = in[1], &b = in[2];
  DenseTensor y = DenseTensor::full(x.shape), mean = rowStatistic(x),
              rstd = mean;
  int64_t cols = x.shape.back();
  forEachRow(x, [&](int64_t row, int64_t base) {
    double centre = meanOf(cols, [&](int64_t c) { return x.values[base + c]; });
    double variance = meanOf(cols, [&](int64_t c) {
      return std::pow(x.values[base + c] - centre, 2);
    });
    mean.values[row] = centre;
    rstd.values[row] = 1 / std::sqrt(variance + eps);
    for (int64_t c = 0; c < cols; ++c)
      y.values[base + c] =
          (x.values[base + c] - centre) * rstd.values[row] * w.values[c] +
          b.values[c];
  });
  return {y, mean, rstd};
}

// Operands: x, w, mean, rstd, dy.
DenseTensor layerNormInputGrad(const Tensors &in) {
  const DenseTensor &x = in[0], &w = in[1], &mean = in[2], &rstd = in[3];
  const DenseTensor &dy = in[4];
  DenseTensor dx = DenseTensor::full(x.shape);
  int64_t cols = x.shape.back();
  forEachRow(x, [&](int64_t row, int64_t base) {
    auto n = [&](int64_t c) {
      return (x.values[base + c] - mean.values[row]) * rstd.values[row];
    };
    auto g = [&](int64_t c) { return w.values[c] * dy.values[base + c]; };
    double meanG = meanOf(cols, g);
    double meanGn = meanOf(cols, [&](int64_t c) { return g(c) * n(c); });
    for (int64_t c = 0; c < cols; ++c)
      dx.values[base + c] = rstd.values[row] * (g(c) - meanG - n(c) * meanGn);
  });
  return dx;
}

// Operands: x, mean, rstd, dy.
DenseTensor layerNormWeightGrad(const Tensors &in) {
  const DenseTensor &x = in[0], &mean = in[1], &rstd = in[2], &dy = in[3];
  int64_t cols = x.shape.back();
  DenseTensor dw = DenseTensor::full({cols});
  forEachRow(x, [&](int64_t row, int64_t base) {
    for (int64_t c = 0; c < cols; ++c)
      dw.values[c] += dy.values[base + c] *
                      (x.values[base + c] - mean.values[row]) *
                      rstd.values[row];
  });
  return dw;
}

/// log(sum(exp(x))) of `cols` elements from `x`, shifted by their maximum.
static double logSumExp(const double *x, int64_t cols) {
  double max = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t c = 0; c < cols; ++c)
    max = std::max(max, x[c]);
  for (int64_t c = 0; c < cols; ++c)
    sum += std::exp(x[c] - max);
  return max + std::log(sum);
}

DenseTensor softmax(const DenseTensor &x) {
  DenseTensor p = DenseTensor::full(x.shape);
  int64_t cols = x.shape.back();
  forEachRow(x, [&](int64_t, int64_t base) {
    double lse = logSumExp(&x.values[base], cols);
    for (int64_t c = 0; c < cols; ++c)
      p.values[base + c] = std::exp(x.values[base + c] - lse);
  });
  return p;
}

// Operands: p, dy.
DenseTensor softmaxGrad(const Tensors &in) {
  const DenseTensor &p = in[0], &dy = in[1];
  DenseTensor dx = DenseTensor::full(p.shape);
  int64_t cols = p.shape.back();
  forEachRow(p, [&](int64_t, int64_t base) {
    double sum = cols * meanOf(cols, [&](int64_t c) {
                   return p.values[base + c] * dy.values[base + c];
                 });
    for (int64_t c = 0; c < cols; ++c)
      dx.values[base + c] = p.values[base + c] * (dy.values[base + c] - sum);
  });
  return dx;
}

//===----------------------------------------------------------------------===//
// Rotary embedding and attention
//===----------------------------------------------------------------------===//

// Operands: x [batch, sequence, heads, head_dim], table [positions, pairs, 2].
DenseTensor rotary(const Tensors &in, bool adjacent, bool inverse) {
  const DenseTensor &x = in[0], &table = in[1];
  DenseTensor y = DenseTensor::full(x.shape);
  int64_t sequence = x.shape[1], heads = x.shape[2], dim = x.shape[3];
  forEachRow(x, [&](int64_t row, int64_t base) {
    int64_t position = row / heads % sequence;
    for (int64_t pair = 0; pair < dim / 2; ++pair) {
      int64_t angle = (position * (dim / 2) + pair) * 2;
      double cosine = table.values[angle];
      double sine =
          inverse ? -table.values[angle + 1] : table.values[angle + 1];
      int64_t first = base + (adjacent ? 2 * pair : pair);
      int64_t second = adjacent ? first + 1 : first + dim / 2;
      double a = x.values[first], b = x.values[second];
      y.values[first] = a * cosine - b * sine;
      y.values[second] = a * sine + b * cosine;
    }
  });
  return y;
}

/// Calls copy(element of the part, element of the whole): the part's heads are
/// those of the whole from `first` on.
template <typename Copy>
static void forEachOfHeads(const DenseTensor &part, const DenseTensor &whole,
                           int64_t first, Copy copy) {
  int64_t heads = part.shape[2], dim = part.shape[3];
  for (int64_t i = 0, n = part.values.size(); i < n; ++i) {
    int64_t token = i / (heads * dim), within = i % (heads * dim);
    copy(i, (token * whole.shape[2] + first) * dim + within);
  }
}

// Operands: x [batch, sequence, heads, head_dim], table as of rotary.
Tensors splitHeads(const Tensors &in, int64_t heads, bool adjacent) {
  const DenseTensor &x = in[0];
  const DenseTensor rotated = rotary(in, adjacent, /*inverse=*/false);
  int64_t keys = (x.shape[2] - heads) / 2, first = 0;
  Tensors parts;
  for (auto [source, count] :
       {std::pair(&rotated, heads), std::pair(&rotated, keys),
        std::pair(&x, keys)}) {
    DenseTensor part =
        DenseTensor::full({x.shape[0], x.shape[1], count, x.shape[3]});
    forEachOfHeads(part, x, first,
                   [&, source = source](int64_t to, int64_t at) {
                     part.values[to] = source->values[at];
                   });
    parts.push_back(std::move(part));
    first += count;
  }
  return parts;
}

// Operands: query, key, value, table.
DenseTensor joinHeads(const Tensors &in, bool adjacent) {
  int64_t heads = in[0].shape[2], keys = in[1].shape[2], first = 0;
  DenseTensor x = DenseTensor::full(
      {in[0].shape[0], in[0].shape[1], heads + 2 * keys, in[0].shape[3]});
  Tensors parts = {rotary({in[0], in[3]}, adjacent, /*inverse=*/true),
                   rotary({in[1], in[3]}, adjacent, /*inverse=*/true), in[2]};
  for (const DenseTensor &part : parts) {
    forEachOfHeads(part, x, first, [&](int64_t from, int64_t at) {
      x.values[at] = part.values[from];
    });
    first += part.shape[2];
  }
  return x;
}

namespace {

/// Indices and scores of one attention problem.
struct AttentionProblem {
  /// `starts` may be null.
  AttentionProblem(const DenseTensor &q, const DenseTensor &k,
                   const DenseTensor *starts, double scale,
                   const nn::AttentionView &view)
      : batch(q.shape[0]), queries(q.shape[1]), keys(k.shape[1]),
        heads(q.shape[2]), kvHeads(k.shape[2]), dim(q.shape[3]), scale(scale),
        view(view), starts(starts) {}

  int64_t query(int64_t b, int64_t position, int64_t head) const {
    return ((b * queries + position) * heads + head) * dim;
  }
  int64_t key(int64_t b, int64_t position, int64_t head) const {
    return ((b * keys + position) * kvHeads + head / (heads / kvHeads)) * dim;
  }
  /// The keys that a query sees.
  llvm::iota_range<int64_t> visible(int64_t b, int64_t position) const {
    int64_t first = view.firstKey(position);
    if (starts)
      first = view.firstKey(position, static_cast<int64_t>(
                                          starts->values[b * queries + position]));
    return llvm::seq(first, view.endKey(position, keys));
  }
  /// Of the product of query and key.
  double score(double product) const {
    double score = scale * product;
    return view.cap == 0 ? score : view.cap * std::tanh(score / view.cap);
  }
  /// The derivative of a score with respect to the product.
  double slope(double score) const {
    return view.cap == 0 ? scale : scale * (1 - std::pow(score / view.cap, 2));
  }
  double dot(const double *a, const double *b) const {
    double sum = 0;
    for (int64_t i = 0; i < dim; ++i)
      sum += a[i] * b[i];
    return sum;
  }
  /// Calls `visit(batch, head, query position)`.
  template <typename Visit> void forEach(Visit visit) const {
    for (int64_t b = 0; b < batch; ++b)
      for (int64_t h = 0; h < heads; ++h)
        for (int64_t i = 0; i < queries; ++i)
          visit(b, h, i);
  }

  int64_t batch, queries, keys, heads, kvHeads, dim;
  double scale;
  nn::AttentionView view;
  const DenseTensor *starts;
};

/// The operand after the first `count`, if there is one.
const DenseTensor *operandAfter(const Tensors &in, size_t count) {
  return in.size() > count ? &in[count] : nullptr;
}

} // namespace

// Operands: q, k, v, perhaps starts.
Tensors attention(const Tensors &in, double scale,
                  const nn::AttentionView &view) {
  const DenseTensor &q = in[0], &k = in[1], &v = in[2];
  AttentionProblem p(q, k, operandAfter(in, 3), scale, view);
  DenseTensor o = DenseTensor::full(q.shape);
  DenseTensor lse = DenseTensor::full({p.batch, p.heads, p.queries});
  p.forEach([&](int64_t b, int64_t h, int64_t i) {
    std::vector<double> scores;
    for (int64_t j : p.visible(b, i))
      scores.push_back(p.score(
          p.dot(&q.values[p.query(b, i, h)], &k.values[p.key(b, j, h)])));
    double total = logSumExp(scores.data(), scores.size());
    lse.values[(b * p.heads + h) * p.queries + i] = total;
    for (auto [j, score] : llvm::zip_equal(p.visible(b, i), scores))
      for (int64_t d = 0; d < p.dim; ++d)
        o.values[p.query(b, i, h) + d] +=
            std::exp(score - total) * v.values[p.key(b, j, h) + d];
  });
  return {o, lse};
}

// Operands: q, k, v, o, lse, do, perhaps starts.
Tensors attentionGrad(const Tensors &in, double scale,
                      const nn::AttentionView &view) {
  const DenseTensor &q = in[0], &k = in[1], &v = in[2], &o = in[3],
                    &lse = in[4];
  const DenseTensor &dO = in[5];
  AttentionProblem p(q, k, operandAfter(in, 6), scale, view);
  DenseTensor dq = DenseTensor::full(q.shape);
  DenseTensor dk = DenseTensor::full(k.shape), dv = dk;
  p.forEach([&](int64_t b, int64_t h, int64_t i) {
    int64_t row = p.query(b, i, h);
    double delta = p.dot(&dO.values[row], &o.values[row]);
    double total = lse.values[(b * p.heads + h) * p.queries + i];
    for (int64_t j : p.visible(b, i)) {
      int64_t column = p.key(b, j, h);
      double score = p.score(p.dot(&q.values[row], &k.values[column]));
      double probability = std::exp(score - total);
      double dProbability = p.dot(&dO.values[row], &v.values[column]);
      double dScore = p.slope(score) * probability * (dProbability - delta);
      for (int64_t d = 0; d < p.dim; ++d) {
        dv.values[column + d] += probability * dO.values[row + d];
        dq.values[row + d] += dScore * k.values[column + d];
        dk.values[column + d] += dScore * q.values[row + d];
      }
    }
  });
  return {dq, dk, dv};
}

//===----------------------------------------------------------------------===//
// Embedding and losses
//===----------------------------------------------------------------------===//

/// Calls body(token, row of the table) for the tokens whose row is there.
template <typename Body>
static void forEachToken(const DenseTensor &indices, bool absent, Body body) {
  for (int64_t i = 0; i < indices.size(); ++i)
    if (!absent || indices.values[i] != -1)
      body(i, static_cast<int64_t>(indices.values[i]));
}

DenseTensor embedding(const Tensors &in, bool absent) {
  const DenseTensor &indices = in[0], &table = in[1];
  int64_t width = table.shape[1];
  std::vector<int64_t> shape = indices.shape;
  shape.push_back(width);
  DenseTensor y = DenseTensor::full(shape, -0.0);
  forEachToken(indices, absent, [&](int64_t token, int64_t row) {
    for (int64_t c = 0; c < width; ++c)
      y.values[token * width + c] = table.values.at(row * width + c);
  });
  return y;
}

DenseTensor embeddingGrad(const Tensors &in, int64_t rows, bool absent) {
  const DenseTensor &indices = in[0], &dy = in[1];
  int64_t width = dy.shape.back();
  DenseTensor dTable = DenseTensor::full({rows, width});
  forEachToken(indices, absent, [&](int64_t token, int64_t row) {
    for (int64_t c = 0; c < width; ++c)
      dTable.values.at(row * width + c) += dy.values[token * width + c];
  });
  return dTable;
}

// Gives the loss per row, and lse.
Tensors crossEntropy(const Tensors &in, int64_t ignoreIndex) {
  const DenseTensor &logits = in[0], &targets = in[1];
  DenseTensor rows = rowStatistic(logits), lse = rows;
  forEachRow(logits, [&](int64_t row, int64_t base) {
    lse.values[row] = logSumExp(&logits.values[base], logits.shape.back());
    int64_t target = targets.values[row];
    if (target != ignoreIndex)
      rows.values[row] = lse.values[row] - logits.values.at(base + target);
  });
  return {rows, lse};
}

// Operands: logits, targets, lse, dRows.
DenseTensor crossEntropyGrad(const Tensors &in, int64_t ignoreIndex) {
  const DenseTensor &logits = in[0], &targets = in[1], &lse = in[2];
  DenseTensor dLogits = DenseTensor::full(logits.shape);
  forEachRow(logits, [&](int64_t row, int64_t base) {
    int64_t target = targets.values[row];
    if (target == ignoreIndex)
      return;
    for (int64_t c = 0; c < logits.shape.back(); ++c) {
      double p = std::exp(logits.values[base + c] - lse.values[row]);
      dLogits.values[base + c] = (p - (c == target)) * in[3].values[row];
    }
  });
  return dLogits;
}

DenseTensor countLabels(const DenseTensor &targets, int64_t ignoreIndex,
                        llvm::ArrayRef<int64_t> shape) {
  DenseTensor counts = DenseTensor::full(shape.vec());
  int64_t part = targets.size() / counts.size();
  for (int64_t i = 0; i < targets.size(); ++i)
    counts.values[i / part] += targets.values[i] != ignoreIndex;
  return counts;
}

DenseTensor divideByCount(const Tensors &in) {
  DenseTensor means = in[0];
  for (int64_t i = 0; i < means.size(); ++i) {
    double count = in[1].values[i];
    means.values[i] = count == 0 ? 0 : means.values[i] / count;
  }
  return means;
}

DenseTensor mseLoss(const Tensors &in, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < in[0].size(); ++i)
    sum += std::pow(in[0].values[i] - in[1].values[i], 2);
  return DenseTensor::scalar(sum / count);
}

// Operands: prediction, target, dloss.
DenseTensor mseLossGrad(const Tensors &in, int64_t count) {
  DenseTensor gradient = in[0];
  for (int64_t i = 0; i < gradient.size(); ++i)
    gradient.values[i] =
        2 * (in[0].values[i] - in[1].values[i]) * in[2].values[0] / count;
  return gradient;
}

//===----------------------------------------------------------------------===//
// The exact gradient norm
//===----------------------------------------------------------------------===//

static constexpr double kDigit = 1 << 24;

/// The smallest power of two not below `max`.
static double scaleOf(double max) {
  return std::exp2(std::ceil(std::log2(max)));
}
static bool hasScale(double max) { return std::isfinite(max) && max > 0; }

DenseTensor absMax(const Tensors &in) {
  double max = 0;
  for (const DenseTensor &tensor : in)
    for (double value : tensor.values)
      if (!(std::fabs(value) <= max))
        max = std::isnan(max) ? max : std::fabs(value);
  return DenseTensor::scalar(max);
}

// Operands: max, gradients...
DenseTensor sumSquares(const Tensors &in) {
  DenseTensor digits = DenseTensor::full({2});
  double max = in[0].values[0];
  if (!hasScale(max))
    return digits;
  for (size_t i = 1; i < in.size(); ++i)
    for (double value : in[i].values) {
      double square = std::pow(value / scaleOf(max), 2) * kDigit;
      double high = std::floor(square);
      digits.values[0] += high;
      digits.values[1] += std::floor((square - high) * kDigit);
    }
  return digits;
}

// Operands: max, digits. Results: norm, coefficient.
Tensors clipCoefficient(const Tensors &in, double maxNorm) {
  double max = in[0].values[0], norm = max, squares = 0;
  for (int64_t i = 0; i < in[1].size(); i += 2)
    squares += in[1].values[i] + in[1].values[i + 1] / kDigit;
  if (hasScale(max))
    norm = std::sqrt(squares / kDigit) * scaleOf(max);
  double coefficient = !std::isfinite(norm)
                           ? std::numeric_limits<double>::quiet_NaN()
                       : maxNorm == 0 ? 1
                                      : std::min(1.0, maxNorm / (norm + 1e-6));
  return {DenseTensor::scalar(norm), DenseTensor::scalar(coefficient)};
}

} // namespace fsdp::interpret
