//===- RowFit.cpp - Scalars for all published rows ------------------------===//
#include "fsdp/Simulation/RowFit.h"
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::simulation;

/// What a scalar may be.
static constexpr double kLeastScalar = 0.01, kMostScalar = 100;

//===----------------------------------------------------------------------===//
// Fitting
//===----------------------------------------------------------------------===//

static double lossOf(const FitProblem &problem, const Scalars &scalars) {
  double loss = 0;
  for (size_t i = 0; i < problem.terms.size(); ++i) {
    double ratio = problem.terms[i].seconds(scalars) / problem.seconds[i];
    loss += ratio > 1 ? ratio : 1 / ratio;
  }
  return loss / static_cast<double>(problem.terms.size());
}

static size_t countOf(const FitProblem &problem, RowGpu::Clock clock) {
  return static_cast<size_t>(
      std::count_if(problem.terms.begin(), problem.terms.end(),
                    [&](const RowTerms &row) { return row.clock == clock; }));
}

/// One scalar times a factor, and another one (or the same) times another.
static Scalars moved(Scalars scalars, size_t i, double by, size_t j,
                     double byToo) {
  scalars[i] *= by;
  if (i != j)
    scalars[j] *= byToo;
  for (double &scalar : scalars)
    scalar = std::min(std::max(scalar, kLeastScalar), kMostScalar);
  return scalars;
}

/// Tries every scalar and every pair, up and down; whether anything was better.
static bool improve(const FitProblem &problem, Scalars &scalars, double &least,
                    double step) {
  bool isBetter = false;
  double up = 1 + step, down = 1 / up;
  for (size_t i = 0; i < kScalars; ++i)
    for (size_t j = 0; j <= i; ++j) {
      if (problem.isFixed[i] || problem.isFixed[j])
        continue;
      for (double by : {up, down})
        for (double byToo : {up, down}) {
          Scalars next = moved(scalars, i, by, j, byToo);
          double loss = lossOf(problem, next);
          // What differs by rounding alone is no better.
          if (loss < least * (1 - 1e-9)) {
            least = loss;
            scalars = next;
            isBetter = true;
          }
        }
    }
  return isBetter;
}

Scalars simulation::fitScalars(const FitProblem &given) {
  FitProblem problem = given;
  Scalars scalars = problem.first;
  if (problem.terms.empty())
    return scalars;
  // A step that no longer helps is halved, down to what four digits show.
  constexpr int kMostRounds = 10000;
  double least = lossOf(problem, scalars), step = 0.125;
  // A pair would move what no row depends on together with what one does.
  for (size_t i = 0; i < kScalars; ++i)
    if (lossOf(problem, moved(scalars, i, 2, i, 1)) == least)
      problem.isFixed[i] = true;
  // A clock of a few rows would be theirs alone.
  for (auto [clock, scalar] : {std::pair(RowGpu::Ampere, Scalar::AmpereClock),
                               std::pair(RowGpu::Capped, Scalar::CappedClock)})
    if (countOf(problem, clock) < kLeastOfClock)
      problem.isFixed[static_cast<size_t>(scalar)] = true;
  for (int round = 0; round < kMostRounds && step > 1e-5; ++round)
    if (!improve(problem, scalars, least, step))
      step /= 2;
  return scalars;
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static constexpr std::array<const char *, kScalars> kScalarMeanings = {
    "share of the best matmul",
    "share of the attention library's rate",
    "share of the memory's bandwidth",
    "times what the machine file gives for collectives",
    "clock of A100s, as the best matmul had 1",
    "clock of H100s with less power, as the best matmul had 1"};

static bool isClock(size_t scalar) {
  return scalar >= static_cast<size_t>(Scalar::AmpereClock);
}

std::string simulation::toToml(const Scalars &scalars) {
  std::string text = "# Written by fsdp-sim --fit. For all rows of a table.\n"
                     "[scalars]\n";
  for (size_t i = 0; i < kScalars; ++i)
    if (!isClock(i) || scalars[i] != 1)
      appendFormat(text, "%s = %.17g # %s\n", kScalarNames[i], scalars[i],
                   kScalarMeanings[i]);
  return text;
}

static double scalarOf(TomlTable &table, const toml::node &section, size_t i) {
  const char *name = kScalarNames[i];
  const toml::node *node = table.find(name);
  if (!node && isClock(i))
    return 1;
  if (!node)
    table.fail(section, std::string(name) + " is missing");
  double number = 0;
  if (const auto *integer = node->as_integer())
    number = static_cast<double>(integer->get());
  else if (const auto *real = node->as_floating_point())
    number = real->get();
  if (!(number >= kLeastScalar && number <= kMostScalar))
    table.fail(*node, std::string(name) + ": expected a number from 0.01 to "
                                          "100");
  return number;
}

Scalars simulation::readScalars(const std::string &text,
                                const std::string &path) {
  toml::table file = parseTomlText(text, path);
  TomlTable table(file, path, "a file of scalars");
  const toml::node *section = table.find("scalars");
  if (!section || !section->is_table())
    table.fail(file, "expected [scalars], as fsdp-sim --fit writes it");
  table.finish();
  TomlTable values(*section, path, "[scalars]");
  Scalars scalars;
  for (size_t i = 0; i < kScalars; ++i)
    scalars[i] = scalarOf(values, *section, i);
  values.finish();
  return scalars;
}

Scalars simulation::loadScalars(const std::string &path) {
  requireSmallFile(path, "the file of scalars");
  return readScalars(readWholeFile(path, "the file of scalars"), path);
}
