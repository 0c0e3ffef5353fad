//===- Decision.h - What is decided about an op -----------------*- C++ -*-===//
//
// The fields of a decision, and one record for each: its name in plans and in
// text, which ops it is about, what its value may be and what it is where
// nothing is decided. Rules of plans, JSON, the attributes fsdp.plan and
// #fsdp.decision and all checks are made from the records. A new field is a
// member of DecisionFields, a record in forEachDecisionField(), and what the
// pass does that applies it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_FSDP_DECISION_H
#define FSDP_DIALECTS_FSDP_DECISION_H

#include "dialects/Fsdp/Fsdp.h"
#include "llvm/ADT/Hashing.h"
#include <optional>
#include <string>

namespace fsdp::dist {

/// Which ops a field is about.
enum class DecidedOps {
  Values, ///< What the forward pass computes and the backward pass uses.
  Collectives,
  ParameterCollectives, ///< Those that move parameters.
  Gathers,
  Reductions,
};

/// How messages call them: "gathers".
llvm::StringRef nameOf(DecidedOps ops);

/// What the value of a field may be, beside what its type says.
enum class FieldDomain {
  Any,
  Distance,   ///< Not negative.
  BucketName, ///< In a plan, a star stands for the number of the block.
  Address,    ///< Of an op or a bucket; empty: of none.
};

/// The fields, each held as `Holds` says: as itself, or as an optional.
template <template <typename> class Holds> struct DecisionFields {
  /// Collectives of one bucket start together. Empty: a bucket of its own.
  Holds<std::string> bucket;
  /// True: those of one kind in a bucket become one collective.
  Holds<bool> merge;
  /// True: the collective runs beside compute (fsdp.async).
  Holds<bool> overlap;
  /// A gather starts this many buckets before it is needed; 0 starts it where
  /// it is needed.
  Holds<int64_t> prefetch;
  /// A reduction is awaited when this many later ones have started; 0: at once.
  Holds<int64_t> defer;
  /// Addresses: the collective starts right after that op, and is awaited
  /// before that one, whatever `prefetch` and `defer` say. Empty: as they say.
  Holds<std::string> startAfter, awaitBefore;
  /// True: what the forward pass computes here is not kept, but computed (or
  /// gathered) again where the backward pass needs it.
  Holds<bool> recompute;
};

/// The record of a field of type `T`; `in(fields)` is its place there.
template <typename T, typename Place> struct DecisionField {
  llvm::StringLiteral name;
  DecidedOps about;
  FieldDomain domain;
  T initial;
  Place in;
};
template <typename T, typename Place>
DecisionField(llvm::StringLiteral, DecidedOps, FieldDomain, T, Place)
    -> DecisionField<T, Place>;

/// Calls `visit` with the record of each field, in the order of their texts.
template <typename Visit> void forEachDecisionField(Visit visit) {
  using Name = llvm::StringLiteral;
  visit(DecisionField{Name("bucket"), DecidedOps::ParameterCollectives,
                      FieldDomain::BucketName, std::string(),
                      [](auto &in) -> auto & { return in.bucket; }});
  visit(DecisionField{Name("merge"), DecidedOps::ParameterCollectives,
                      FieldDomain::Any, true,
                      [](auto &in) -> auto & { return in.merge; }});
  visit(DecisionField{Name("overlap"), DecidedOps::Collectives,
                      FieldDomain::Any, false,
                      [](auto &in) -> auto & { return in.overlap; }});
  visit(DecisionField{Name("prefetch"), DecidedOps::Gathers,
                      FieldDomain::Distance, int64_t(0),
                      [](auto &in) -> auto & { return in.prefetch; }});
  visit(DecisionField{Name("defer"), DecidedOps::Reductions,
                      FieldDomain::Distance, int64_t(0),
                      [](auto &in) -> auto & { return in.defer; }});
  visit(DecisionField{Name("start_after"), DecidedOps::Collectives,
                      FieldDomain::Address, std::string(),
                      [](auto &in) -> auto & { return in.startAfter; }});
  visit(DecisionField{Name("await_before"), DecidedOps::Collectives,
                      FieldDomain::Address, std::string(),
                      [](auto &in) -> auto & { return in.awaitBefore; }});
  visit(DecisionField{Name("recompute"), DecidedOps::Values, FieldDomain::Any,
                      false, [](auto &in) -> auto & { return in.recompute; }});
}

template <typename T> using Itself = T;

/// What is decided about an op; of itself, that it stays as it is.
struct Decision : DecisionFields<Itself> {
  Decision();
  bool operator==(const Decision &other) const;
};

llvm::hash_code hash_value(const Decision &decision);

/// What is wrong with the value of a field, whatever the program; empty if
/// nothing is.
template <typename T>
llvm::StringRef problemOf(FieldDomain domain, const T &value) {
  if constexpr (std::is_same_v<T, int64_t>)
    if (domain == FieldDomain::Distance && value < 0)
      return "a distance is not negative";
  return {};
}

/// What fsdp.decision of `op` says; nothing if it has none.
Decision decisionOf(mlir::Operation *op);

/// Verifies the attribute fsdp.decision of `op`: it is a #fsdp.decision, and
/// each field that says something is about such an op.
mlir::LogicalResult verifyDecision(mlir::Operation *op,
                                   mlir::Attribute attribute);

} // namespace fsdp::dist

#endif // FSDP_DIALECTS_FSDP_DECISION_H
