//===- Curve.cpp - Between measured points --------------------------------===//
#include "Curve.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;

using Point = std::pair<double, double>;

/// y at x on the power of x through two points, of which the second is not
/// smaller in either.
static double powerBetween(Point low, Point high, double x) {
  // After these, a straight line is off by less than 10^-7 of y, for points
  // that are a factor of 1,000 apart.
  constexpr int halvings = 14;
  for (int i = 0; i < halvings; ++i) {
    Point middle = {std::sqrt(low.first) * std::sqrt(high.first),
                    std::sqrt(low.second) * std::sqrt(high.second)};
    // What rounding puts outside would turn the order around.
    middle.first = std::clamp(middle.first, low.first, high.first);
    middle.second = std::clamp(middle.second, low.second, high.second);
    (x < middle.first ? high : low) = middle;
  }
  if (!(high.first > low.first))
    return low.second;
  double part = (x - low.first) / (high.first - low.first);
  return std::min(low.second + (high.second - low.second) * part, high.second);
}

/// The two last points, raised to not fall, of which `yOf` says y, up to the
/// first one that is not below x.
namespace {
struct Pair {
  Point low, high;
  bool isInside; // x lies between them
};
} // namespace
template <typename YOf>
static Pair pairAround(const Machine::Points &points, double x, YOf yOf) {
  Point first = {points[0].first, yOf(points[0])};
  Pair pair = {first, first, x <= first.first};
  for (size_t i = 1; i < points.size() && !pair.isInside; ++i) {
    pair.low = pair.high;
    pair.high = {points[i].first, std::max(pair.low.second, yOf(points[i]))};
    pair.isInside = x <= pair.high.first;
  }
  return pair;
}

double fsdp::secondsAt(const Machine::Points &points, double bytes) {
  auto [low, high, isInside] = pairAround(
      points, bytes, [](const Point &point) { return point.second; });
  if (isInside)
    return bytes <= low.first ? low.second : powerBetween(low, high, bytes);
  double slope = high.first > low.first
                     ? (high.second - low.second) / (high.first - low.first)
                     : 0;
  return slope > 0 ? high.second + (bytes - high.first) * slope
                   : high.second * (bytes / high.first);
}

double fsdp::rampedBytes(const Machine::Ramp &ramp, double bytes) {
  auto ramped = [](const Point &point) { return point.first / point.second; };
  auto [low, high, isInside] = pairAround(ramp.points, bytes, ramped);
  if (!isInside)
    return high.second * (bytes / high.first);
  return bytes <= low.first ? low.second * (bytes / low.first)
                            : powerBetween(low, high, bytes);
}

/// A power of two has its exponent, and between them the line is straight:
/// logarithms of libraries differ in their last bit.
static double logarithm(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  return 2 * mantissa + exponent;
}

double fsdp::rateAt(const Machine::Rates &rates,
                    const std::array<double, 3> &sizes) {
  double weights = 0, sum = 0;
  for (const Machine::Rate &rate : rates) {
    double square = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      double apart = logarithm(sizes[i]) - logarithm(rate.sizes[i]);
      square += apart * apart;
    }
    if (square == 0)
      return rate.flopsPerSecond;
    double weight = 1 / (square * square * square);
    weights += weight;
    sum += weight * rate.flopsPerSecond;
  }
  return sum / weights;
}
