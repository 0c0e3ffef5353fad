//===- LossPlot.cpp - The curve of the loss as SVG ------------------------===//
#include "LossPlot.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;

std::vector<double> fsdp::axisTicks(double low, double high, int count) {
  if (!std::isfinite(high - low))
    return {};
  // Between two values that are nearly one, ticks must still be told apart.
  double least = 1e-9 * std::max({1.0, std::abs(low), std::abs(high)});
  double raw = std::max(high - low, least) / count;
  double power = std::pow(10, std::floor(std::log10(raw)));
  double step = power;
  for (double factor : {2.0, 5.0, 10.0})
    if (raw > step)
      step = factor * power;
  std::vector<double> ticks;
  for (double i = std::floor(low / step);; ++i) {
    ticks.push_back(i * step);
    if (i * step >= high && ticks.size() > 1)
      return ticks;
  }
}

namespace {

constexpr double kWidth = 900, kHeight = 480;
constexpr double kLeft = 70, kRight = 870, kTop = 50, kBottom = 420;

/// Maps steps and losses to the page.
struct Axes {
  std::vector<double> steps, losses; // ticks

  double x(double step) const {
    return kLeft + (step - steps.front()) / (steps.back() - steps.front()) *
                       (kRight - kLeft);
  }
  double y(double loss) const {
    return kBottom - (loss - losses.front()) /
                         (losses.back() - losses.front()) * (kBottom - kTop);
  }
};

} // namespace

static std::string text(double x, double y, const char *anchor,
                        const std::string &content, const char *color) {
  std::string escaped;
  for (char c : content)
    escaped += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return format("<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" "
                "fill=\"%s\">%s</text>\n",
                x, y, anchor, color, escaped.c_str());
}

static std::string line(double x1, double y1, double x2, double y2,
                        const char *style) {
  return format("<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" "
                "%s/>\n",
                x1, y1, x2, y2, style);
}

static std::string drawAxes(const Axes &axes, const std::string &unit) {
  std::string svg;
  for (double step : axes.steps) {
    svg += line(axes.x(step), kBottom, axes.x(step), kBottom + 5,
                "stroke=\"#333\"");
    svg +=
        text(axes.x(step), kBottom + 20, "middle", format("%g", step), "#333");
  }
  for (double loss : axes.losses) {
    svg += line(kLeft, axes.y(loss), kRight, axes.y(loss), "stroke=\"#ddd\"");
    svg += text(kLeft - 8, axes.y(loss) + 4, "end", format("%g", loss), "#333");
  }
  svg += line(kLeft, kBottom, kRight, kBottom, "stroke=\"#333\"");
  svg += text((kLeft + kRight) / 2, kBottom + 42, "middle", "step", "#333");
  svg += text(kLeft, kTop - 12, "start", unit, "#333");
  return svg;
}

static std::string drawLosses(const Axes &axes, int64_t firstStep,
                              const std::vector<double> &losses,
                              const char *style) {
  std::string points;
  for (size_t i = 0; i < losses.size(); ++i)
    if (std::isfinite(losses[i]))
      points += format(
          "%.1f,%.1f ",
          axes.x(static_cast<double>(firstStep) + static_cast<double>(i)),
          axes.y(losses[i]));
  return "<polyline fill=\"none\" " + std::string(style) + " points=\"" +
         points + "\"/>\n";
}

/// Exponential moving average over about a fiftieth of the run, corrected for
/// its start. What is not finite stays so, and counts for nothing.
static std::vector<double> smooth(const std::vector<double> &losses) {
  double weight = 1 / std::max(1.0, static_cast<double>(losses.size()) / 50);
  std::vector<double> result;
  double sum = 0, total = 0;
  for (double loss : losses) {
    if (!std::isfinite(loss)) {
      result.push_back(loss);
      continue;
    }
    sum = (1 - weight) * sum + weight * loss;
    total = (1 - weight) * total + weight;
    result.push_back(sum / total);
  }
  return result;
}

/// The held-out loss between steps: a point each.
static std::string
drawValidations(const Axes &axes,
                const std::vector<std::pair<int64_t, double>> &validations) {
  std::string svg;
  for (auto [step, loss] : validations)
    if (std::isfinite(loss))
      svg += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" "
                    "fill=\"#c0392b\"><title>step %lld: %.3f</title>"
                    "</circle>\n",
                    axes.x(static_cast<double>(step)), axes.y(loss),
                    static_cast<long long>(step), loss);
  return svg;
}

std::string fsdp::drawLossCurve(const LossCurve &curve) {
  std::vector<double> values;
  auto take = [&](double value) {
    if (std::isfinite(value))
      values.push_back(value);
  };
  std::for_each(curve.losses.begin(), curve.losses.end(), take);
  for (const auto &validation : curve.validations)
    take(validation.second);
  for (const std::optional<double> &value : {curve.heldOut, curve.gzipHeldOut})
    if (value)
      take(*value);
  if (values.empty())
    values.push_back(0);
  auto [low, high] = std::minmax_element(values.begin(), values.end());
  auto steps = static_cast<double>(curve.firstStep - 1) +
               static_cast<double>(curve.losses.size());
  Axes axes{axisTicks(0, steps, 8), axisTicks(*low, *high, 8)};

  std::string svg =
      format("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" "
             "height=\"%.0f\" font-family=\"sans-serif\" font-size=\"13\">\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
             kWidth, kHeight);
  svg += text(kWidth / 2, 24, "middle", curve.title, "#000");
  svg += drawAxes(axes, curve.unit);
  svg += drawLosses(axes, curve.firstStep, curve.losses, "stroke=\"#aac7ea\"");
  svg += drawLosses(axes, curve.firstStep, smooth(curve.losses),
                    "stroke=\"#1f5fa8\" stroke-width=\"2\"");
  svg += drawValidations(axes, curve.validations);
  if (curve.gzipHeldOut) {
    double y = axes.y(*curve.gzipHeldOut);
    svg +=
        line(kLeft, y, kRight, y, "stroke=\"#888\" stroke-dasharray=\"6 4\"");
    svg += text(kRight, y - 6, "end",
                format("gzip -9, held-out text: %.3f", *curve.gzipHeldOut),
                "#555");
  }
  if (curve.heldOut && std::isfinite(*curve.heldOut)) {
    double x = axes.x(steps), y = axes.y(*curve.heldOut);
    svg += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"5\" "
                  "fill=\"#c0392b\"/>\n",
                  x, y);
    svg +=
        text(x + 5, y - 10, "end",
             format("held-out %s: %.3f", curve.tokens.c_str(), *curve.heldOut),
             "#c0392b");
  }
  return svg + "</svg>\n";
}
