//===- RowFit.h - Step times of published rows, from scalars ----*- C++ -*-===//
//
// A row's step takes
//
//   matmuls / (best matmul * matmul * clock)
//   + attention / (the library's rate * attention * clock)
//   + bytes of all other kernels / (bandwidth * memory)
//   + collectives by the machine file * communication
//
// with one set of scalars for all rows. There is a clock of A100s and one of
// H100s whose power is capped; on others it is 1. Fitting uses + - * / only and
// a fixed order of steps, so the same rows give the same scalars everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SIMULATION_ROWFIT_H
#define FSDP_SIMULATION_ROWFIT_H

#include "fsdp/Simulation/PublishedRows.h"
#include <array>

namespace fsdp::simulation {

enum class Scalar {
  Matmul,
  Attention,
  Memory,
  Communication,
  AmpereClock,
  CappedClock
};
inline constexpr size_t kScalars = 6;
inline constexpr std::array<const char *, kScalars> kScalarNames = {
    "matmul",        "attention",  "memory",
    "communication", "a100_clock", "capped_h100_clock"};
using Scalars = std::array<double, kScalars>;
/// What fitting starts from; a scalar that no row depends on stays there, and
/// so does a clock of fewer than kLeastOfClock rows.
inline constexpr Scalars kFirstScalars = {0.9, 0.5, 0.4, 1.2, 1, 1};
inline constexpr size_t kLeastOfClock = 5;

/// Seconds of a step by cause, at scalars of 1.
struct RowTerms {
  double matmul = 0, attention = 0, memory = 0, communication = 0;
  /// Copies to and from the host's memory; no scalar.
  double host = 0;
  RowGpu::Clock clock = RowGpu::Own;

  double seconds(const Scalars &scalars) const;
};
/// Throws fsdp::Error that names the row, where the machine file says nothing
/// of such a group.
RowTerms termsOf(const PublishedRow &row, const std::string &path);

/// What is known and what is to be found.
struct FitProblem {
  std::vector<RowTerms> terms;
  std::vector<double> seconds;
  /// Scalars that stay at their first value.
  std::array<bool, kScalars> isFixed = {};
  Scalars first = kFirstScalars;
};
/// The scalars with the least mean of max(predicted / published, published /
/// predicted). No rows: the first scalars.
Scalars fitScalars(const FitProblem &problem);

/// The file of scalars: readScalars of it gives the same ones. A clock of 1 is
/// left out.
std::string toToml(const Scalars &scalars);
/// Throws fsdp::Error that names file, line, key and what is expected.
Scalars readScalars(const std::string &text, const std::string &path);
Scalars loadScalars(const std::string &path);

/// A line for each row, then how good the predictions are, beside a constant
/// rate and a log-linear regression fitted to the same rows. `isFitted` says
/// that the scalars are these rows' own; then what each term is worth follows.
std::string fitReport(const RowTable &table, const std::vector<RowTerms> &terms,
                      const Scalars &scalars, bool isFitted);

} // namespace fsdp::simulation

#endif // FSDP_SIMULATION_ROWFIT_H
