//===- AttentionReference.cpp - Causal attention in f64 -------------------===//
#include "AttentionReference.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::rt;

static constexpr double kRounding = 1.5 / 256;

/// What a query and a head see, from key `first` on.
struct gpu::AttentionReference::Query {
  int64_t first;
  /// Probabilities and their gradients.
  std::vector<double> p, dp;
  /// sum(out * dout), and how far it may be off.
  double sum, sumAllowed;

  double probability(int64_t key) const { return p[size_t(key - first)]; }
  /// Of the score.
  double gradient(int64_t key) const {
    return probability(key) * (dp[size_t(key - first)] - sum);
  }
};

gpu::AttentionReference::AttentionReference(const AttentionDesc &desc,
                                            std::vector<float> q,
                                            std::vector<float> k,
                                            std::vector<float> v,
                                            std::vector<float> dout)
    : desc(desc), group(desc.heads / desc.kvHeads), q(std::move(q)),
      k(std::move(k)), v(std::move(v)), dout(std::move(dout)) {}

double gpu::AttentionReference::dot(const float *a, const float *b) const {
  double sum = 0;
  for (int64_t i = 0; i < desc.headDim; ++i)
    sum += double(a[i]) * double(b[i]);
  return sum;
}

gpu::AttentionReference::Query
gpu::AttentionReference::look(int64_t query, int64_t head) const {
  Query seen;
  seen.first =
      desc.window == 0 ? 0 : std::max<int64_t>(query - desc.window + 1, 0);
  const float *mine = ofQuery(q, query, head),
              *gradient = ofQuery(dout, query, head);
  for (int64_t key = seen.first; key <= query; ++key) {
    seen.p.push_back(dot(mine, ofGroup(k, key, head / group)) * desc.scale);
    seen.dp.push_back(dot(gradient, ofGroup(v, key, head / group)));
  }
  double largest = *std::max_element(seen.p.begin(), seen.p.end()), sum = 0;
  for (double &p : seen.p)
    sum += p = std::exp(p - largest);
  std::vector<double> out(size_t(desc.headDim));
  seen.sum = seen.sumAllowed = 0;
  for (size_t j = 0; j < seen.p.size(); ++j) {
    seen.p[j] /= sum;
    seen.sum += seen.p[j] * seen.dp[j];
    const float *value = ofGroup(v, seen.first + int64_t(j), head / group);
    for (size_t i = 0; i < out.size(); ++i)
      out[i] += seen.p[j] * double(value[i]);
  }
  for (size_t i = 0; i < out.size(); ++i)
    seen.sumAllowed += kRounding * std::abs(out[i] * double(gradient[i]));
  return seen;
}

/// Adds `weight` times `x`, where the weight may be off by `error`.
static void add(gpu::AttentionReference::Row &row, double weight, double error,
                const float *x) {
  for (size_t i = 0; i < row.value.size(); ++i) {
    row.value[i] += weight * double(x[i]);
    row.allowed[i] += error * std::abs(double(x[i]));
  }
}

/// What is there is rounded.
static void round(gpu::AttentionReference::Row &row) {
  for (size_t i = 0; i < row.value.size(); ++i)
    row.allowed[i] += kRounding * std::abs(row.value[i]);
}

static gpu::AttentionReference::Row zeros(int64_t count) {
  return {std::vector<double>(size_t(count)),
          std::vector<double>(size_t(count))};
}

gpu::AttentionReference::Row gpu::AttentionReference::out(int64_t query,
                                                          int64_t head) const {
  Query seen = look(query, head);
  Row row = zeros(desc.headDim);
  for (int64_t key = seen.first; key <= query; ++key) {
    double p = seen.probability(key);
    add(row, p, kRounding * p, ofGroup(v, key, head / group));
  }
  round(row);
  return row;
}

gpu::AttentionReference::Row gpu::AttentionReference::dq(int64_t query,
                                                         int64_t head) const {
  Query seen = look(query, head);
  Row row = zeros(desc.headDim);
  for (int64_t key = seen.first; key <= query; ++key) {
    double ds = desc.scale * seen.gradient(key);
    add(row, ds,
        kRounding * std::abs(ds) +
            desc.scale * seen.probability(key) * seen.sumAllowed,
        ofGroup(k, key, head / group));
  }
  round(row);
  return row;
}

gpu::AttentionReference::Row
gpu::AttentionReference::ofKey(int64_t key, int64_t head, bool isKeys) const {
  Row all = zeros(desc.headDim);
  int64_t end = desc.window == 0
                    ? desc.qLen
                    : std::min<int64_t>(desc.qLen, key + desc.window);
  for (int64_t h = head * group; h < (head + 1) * group; ++h) {
    Row row = zeros(desc.headDim);
    for (int64_t query = key; query < end; ++query) {
      Query seen = look(query, h);
      double p = seen.probability(key), ds = desc.scale * seen.gradient(key);
      if (isKeys)
        add(row, ds,
            kRounding * std::abs(ds) + desc.scale * p * seen.sumAllowed,
            ofQuery(q, query, h));
      else
        add(row, p, kRounding * p, ofQuery(dout, query, h));
    }
    round(row);
    for (size_t i = 0; i < all.value.size(); ++i) {
      all.value[i] += row.value[i];
      all.allowed[i] += row.allowed[i];
    }
  }
  round(all);
  return all;
}
