//===- StepReport.cpp - What a simulated step is, for people --------------===//
#include "StepReportRows.h"
#include "fsdp/Support/Text.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::simulation;

static double percent(double part, double whole) {
  return whole == 0 ? 0 : 100 * part / whole;
}

static double milliseconds(Duration duration) {
  return duration.seconds() * 1e3;
}

static double gibibytes(int64_t bytes) {
  return static_cast<double>(bytes) / (1 << 30);
}

static void appendTimes(std::string &text, const Report &report) {
  const StepResult &step = report.step;
  double total = step.total.seconds();
  appendFormat(text, "step time %18.3f ms\n", milliseconds(step.total));
  appendFormat(text, "  bound %20.3f ms  %5.1f %%  %s\n",
               milliseconds(step.bound), percent(step.bound.seconds(), total),
               step.link < step.bound ? "compute, slowed by communication"
                                      : "communication alone");
  appendFormat(text, "  compute %18.3f ms  %5.1f %%\n",
               milliseconds(step.compute),
               percent(step.compute.seconds(), total));
  appendFormat(text, "  communication %12.3f ms  %5.1f %%\n",
               milliseconds(step.link), percent(step.link.seconds(), total));
  appendFormat(
      text,
      "  exposed %18.3f ms  %5.1f %%  communication that compute waits for\n",
      milliseconds(step.exposed), percent(step.exposed.seconds(), total));
}

static void appendRates(std::string &text, const Report &report) {
  const StepResult &step = report.step;
  double flops = step.flopsPerSecond();
  double peak = peakFlopsOf(report.problem, report.costs.model.machine());
  if (step.tokens != 0)
    appendFormat(text, "tokens/s %19.0f     %10.1f of each of %lld ranks\n",
                 step.tokensPerSecond(),
                 step.tokensPerSecond() / static_cast<double>(step.ranks),
                 static_cast<long long>(step.ranks));
  appendFormat(text, "MFU %24.1f %%   %10.1f TFLOP/s of %.0f\n",
               percent(flops, peak), flops / 1e12, peak / 1e12);
}

static void appendMemory(std::string &text, const Report &report) {
  const StepResult &step = report.step;
  int64_t device = report.costs.model.machine().device.memoryBytes;
  appendFormat(text, "peak memory %16.3f GiB %5.1f %% of the machine's\n",
               gibibytes(step.peak.total()),
               percent(static_cast<double>(step.peak.total()),
                       static_cast<double>(device)));
  for (auto [name, bytes] : rowsOf(step.peak))
    if (bytes != 0)
      appendFormat(text, "  %-25s %0.3f GiB\n", name, gibibytes(bytes));
}

static void appendCollectives(std::string &text, const Report &report,
                              size_t most) {
  std::vector<CollectiveRow> rows = collectiveRowsOf(report);
  if (rows.empty())
    return;
  appendFormat(text, "%12s %12s %6s %12s %7s  %s\n", "exposed us", "takes us",
               "times", "MB", "ranks", "collective");
  for (size_t i = 0; i < std::min(most, rows.size()); ++i) {
    const CollectiveRow &row = rows[i];
    appendFormat(text, "%12.1f %12.1f %6lld %12.3f %3lldx%-3lld  %s\n",
                 row.exposed.seconds() * 1e6, row.time.seconds() * 1e6,
                 static_cast<long long>(row.times),
                 static_cast<double>(row.call.bytes) / 1e6,
                 static_cast<long long>(row.call.shape.nodes),
                 static_cast<long long>(row.call.shape.ranksPerNode),
                 printableLine(row.address).c_str());
  }
  if (rows.size() > most)
    appendFormat(text, "%12s %zu more; --all prints them\n", "",
                 rows.size() - most);
}

std::string fsdp::simulation::textOf(const Report &report, size_t rows) {
  std::string text;
  appendTimes(text, report);
  appendRates(text, report);
  appendMemory(text, report);
  appendCollectives(text, report, rows);
  return text;
}
