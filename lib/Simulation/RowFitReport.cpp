//===- RowFitReport.cpp - How well published rows are predicted -----------===//
#include "fsdp/Machine/Machine.h"
#include "fsdp/Simulation/RowFit.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>
#include <map>

using namespace fsdp;
using namespace fsdp::simulation;

/// Predicted / published - 1.
using RowErrors = std::vector<double>;

static RowErrors errorsOf(const std::vector<PublishedRow> &rows,
                          const std::vector<double> &predicted) {
  RowErrors errors;
  for (size_t i = 0; i < rows.size(); ++i)
    errors.push_back(predicted[i] / rows[i].seconds() - 1);
  return errors;
}

static std::vector<double> predictionsOf(const std::vector<RowTerms> &terms,
                                         const Scalars &scalars) {
  std::vector<double> predicted;
  for (const RowTerms &row : terms)
    predicted.push_back(row.seconds(scalars));
  return predicted;
}

static void appendQuality(std::string &text, const char *what,
                          RowErrors errors) {
  double sum = 0, within = 0, most = 0;
  for (double &error : errors) {
    error = std::fabs(error);
    sum += error;
    within += error <= 0.08;
    most = std::max(most, error);
  }
  std::sort(errors.begin(), errors.end());
  auto count = static_cast<double>(errors.size());
  double median =
      (errors[(errors.size() - 1) / 2] + errors[errors.size() / 2]) / 2;
  appendFormat(text, "%-34s %5.1f %%   %5.1f %%   %5.1f %%   %5.1f %%\n", what,
               100 * sum / count, 100 * median, 100 * within / count,
               100 * most);
}

//===----------------------------------------------------------------------===//
// Predictors to compare with
//===----------------------------------------------------------------------===//

/// Operations of a rank in a step; what is computed twice counts.
static double operationsOf(const PublishedRow &row) {
  auto tokens =
      static_cast<double>(row.globalTokens()) / static_cast<double>(row.gpus);
  double perToken =
      6 * static_cast<double>(row.parameters) +
      12.0 * static_cast<double>(row.model.layers * row.model.width) *
          static_cast<double>(row.sequence);
  return tokens * perToken *
         (row.recompute == RowRecompute::Full ? 4.0 / 3 : 1);
}

/// One rate for all rows of a kind of GPU and a precision: their median.
static std::vector<double> constantRate(const std::vector<PublishedRow> &rows) {
  std::map<std::pair<RowGpu::Clock, bool>, std::vector<double>> rates;
  auto kindOf = [](const PublishedRow &row) {
    return std::pair(row.gpu->clock, row.isFp8);
  };
  for (const PublishedRow &row : rows)
    rates[kindOf(row)].push_back(operationsOf(row) / row.seconds());
  for (auto &[kind, some] : rates)
    std::sort(some.begin(), some.end());
  std::vector<double> predicted;
  for (const PublishedRow &row : rows) {
    const std::vector<double> &some = rates[kindOf(row)];
    predicted.push_back(operationsOf(row) / some[some.size() / 2]);
  }
  return predicted;
}

static constexpr size_t kFeatures = 8;
using Features = std::array<double, kFeatures>;

static Features featuresOf(const PublishedRow &row) {
  return {1,
          std::log(operationsOf(row)),
          std::log(static_cast<double>(row.sequence)),
          std::log(static_cast<double>(row.model.width)),
          std::log(static_cast<double>(row.gpus)),
          row.gpu->clock == RowGpu::Ampere ? 1.0 : 0.0,
          row.gpu->clock == RowGpu::Capped ? 1.0 : 0.0,
          row.isFp8 ? 1.0 : 0.0};
}

/// Solves the normal equations by elimination. A little is added to the
/// diagonal, for features that all rows share.
static Features solved(std::array<Features, kFeatures> matrix, Features right) {
  for (size_t i = 0; i < kFeatures; ++i)
    matrix[i][i] += 1e-6;
  for (size_t i = 0; i < kFeatures; ++i)
    for (size_t row = 0; row < kFeatures; ++row) {
      if (row == i)
        continue;
      double factor = matrix[row][i] / matrix[i][i];
      for (size_t k = i; k < kFeatures; ++k)
        matrix[row][k] -= factor * matrix[i][k];
      right[row] -= factor * right[i];
    }
  for (size_t i = 0; i < kFeatures; ++i)
    right[i] /= matrix[i][i];
  return right;
}

static std::vector<double> regression(const std::vector<PublishedRow> &rows) {
  std::array<Features, kFeatures> matrix = {};
  Features right = {};
  for (const PublishedRow &row : rows) {
    Features features = featuresOf(row);
    for (size_t i = 0; i < kFeatures; ++i) {
      for (size_t k = 0; k < kFeatures; ++k)
        matrix[i][k] += features[i] * features[k];
      right[i] += features[i] * std::log(row.seconds());
    }
  }
  Features weights = solved(matrix, right);
  std::vector<double> predicted;
  for (const PublishedRow &row : rows) {
    Features features = featuresOf(row);
    double sum = 0;
    for (size_t i = 0; i < kFeatures; ++i)
      sum += weights[i] * features[i];
    predicted.push_back(std::exp(sum));
  }
  return predicted;
}

//===----------------------------------------------------------------------===//
// What each term is worth
//===----------------------------------------------------------------------===//

static void appendWithout(std::string &text, const char *what,
                          const std::vector<PublishedRow> &rows,
                          const FitProblem &problem) {
  Scalars scalars = fitScalars(problem);
  appendQuality(text, what,
                errorsOf(rows, predictionsOf(problem.terms, scalars)));
}

static void appendWorths(std::string &text,
                         const std::vector<PublishedRow> &rows,
                         const std::vector<RowTerms> &terms) {
  FitProblem all;
  all.terms = terms;
  for (const PublishedRow &row : rows)
    all.seconds.push_back(row.seconds());
  text += "left out, the others fitted again\n";
  const std::pair<const char *, double RowTerms::*> without[] = {
      {"  without matmuls", &RowTerms::matmul},
      {"  without attention", &RowTerms::attention},
      {"  without memory-bound kernels", &RowTerms::memory},
      {"  without communication", &RowTerms::communication}};
  for (auto [what, term] : without) {
    FitProblem problem = all;
    for (RowTerms &row : problem.terms)
      row.*term = 0;
    appendWithout(text, what, rows, problem);
  }
  const char *const fixed[] = {"  every matmul the best one",
                               "  attention at its full rate",
                               "  memory at its full bandwidth",
                               "  communication as by the machine",
                               "  no clock of A100s",
                               "  no clock of capped H100s"};
  Scalars fitted = fitScalars(all);
  for (size_t i = 0; i < kScalars; ++i) {
    if (fitted[i] == 1)
      continue;
    FitProblem problem = all;
    problem.first[i] = 1;
    problem.isFixed[i] = true;
    appendWithout(text, fixed[i], rows, problem);
  }
}

//===----------------------------------------------------------------------===//
// Outliers
//===----------------------------------------------------------------------===//

/// Rows that differ in the number of GPUs or the sequence's length alone.
static bool areNeighbours(const PublishedRow &a, const PublishedRow &b) {
  return a.line != b.line && a.model.name == b.model.name && a.gpu == b.gpu &&
         a.profile == b.profile && a.recompute == b.recompute &&
         a.isFp8 == b.isFp8 && (a.gpus == b.gpus || a.sequence == b.sequence);
}

/// State of mixed precision: 16 bytes of a parameter, of the memory of a GPU.
static double shareOfState(const PublishedRow &row) {
  auto ranks = static_cast<double>(row.shards() * row.tensorRanks * row.stages);
  return 16 * static_cast<double>(row.parameters) / ranks /
         static_cast<double>(loadMachine(row.gpu->machine).device.memoryBytes);
}

static std::string reasonOf(const std::vector<PublishedRow> &rows,
                            const RowErrors &errors, size_t i) {
  double state = shareOfState(rows[i]);
  if (errors[i] < 0 && state > 0.6)
    return format("parameters, gradients and optimizer take %.0f %% of the "
                  "memory; likely the allocator frees and asks again, which is "
                  "not modelled",
                  100 * state);
  double sum = 0, count = 0;
  for (size_t k = 0; k < rows.size(); ++k)
    if (areNeighbours(rows[i], rows[k])) {
      sum += errors[k];
      ++count;
    }
  if (count > 0 && std::fabs(sum / count - errors[i]) > 0.1)
    return format("rows that differ in GPUs or length alone (%.0f) are off by "
                  "%+.1f %% on average; likely the run itself was disturbed",
                  count, 100 * sum / count);
  return "none is known";
}

static void appendOutliers(std::string &text,
                           const std::vector<PublishedRow> &rows,
                           const RowErrors &errors) {
  for (size_t i = 0; i < rows.size(); ++i)
    if (std::fabs(errors[i]) > 0.15)
      text +=
          format("outlier, line %lld: ", static_cast<long long>(rows[i].line)) +
          rows[i].name() + format(", %+.1f %%: ", 100 * errors[i]) +
          reasonOf(rows, errors, i) + "\n";
}

//===----------------------------------------------------------------------===//
// The report
//===----------------------------------------------------------------------===//

std::string simulation::fitReport(const RowTable &table,
                                  const std::vector<RowTerms> &terms,
                                  const Scalars &scalars, bool isFitted) {
  const std::vector<PublishedRow> &rows = table.rows;
  std::vector<double> predicted = predictionsOf(terms, scalars);
  RowErrors errors = errorsOf(rows, predicted);
  std::string text = "  line  published s  predicted s    error  row\n";
  for (size_t i = 0; i < rows.size(); ++i)
    appendFormat(text, "%6lld %12.4f %12.4f %+7.1f %%  %s\n",
                 static_cast<long long>(rows[i].line), rows[i].seconds(),
                 predicted[i], 100 * errors[i], rows[i].name().c_str());
  for (const std::string &line : table.leftOut)
    text += "left out, " + line + "\n";
  appendFormat(text, "\nscalars, %s:", isFitted ? "fitted" : "given");
  for (size_t i = 0; i < kScalars; ++i)
    if (scalars[i] != 1)
      appendFormat(text, " %s %.3f", kScalarNames[i], scalars[i]);
  appendFormat(text, "\n\n%-34s %7s   %7s   %7s   %7s\n",
               format("%zu rows", rows.size()).c_str(), "mean", "median",
               "in 8 %", "largest");
  appendQuality(text, "this model", errors);
  appendQuality(text, "constant rate, fitted here",
                errorsOf(rows, constantRate(rows)));
  appendQuality(text, "log-linear regression, fitted here",
                errorsOf(rows, regression(rows)));
  if (isFitted)
    appendWorths(text, rows, terms);
  text += "\n";
  appendOutliers(text, rows, errors);
  return text;
}
