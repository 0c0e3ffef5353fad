//===- Decisions.h - What a plan means for a module -------------*- C++ -*-===//
#ifndef FSDP_SCHEDULE_DECISIONS_H
#define FSDP_SCHEDULE_DECISIONS_H

#include "fsdp/Schedule/Address.h"
#include "fsdp/Schedule/Plan.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/GlobPattern.h"
#include <tuple>

namespace fsdp::schedule {

/// Whether an op after nn.seed computes: that a value is the loss, or a result
/// of the program, is no use in the backward pass.
bool computesBackward(mlir::Operation *op);
/// Whether a clone for the backward pass that reads `op` gets a clone of it
/// too. Casts and reshapes cost next to nothing, unless what they read is
/// larger and would be kept for them: rows of a table, which are rounded.
bool isClonedWithUser(mlir::Operation *op);

/// The ops before nn.seed whose values the ops after it compute with, or
/// what can be computed again from those values.
llvm::DenseSet<mlir::Operation *> neededBackward(mlir::Block &program);

/// Something that a plan can decide about: a decision point.
struct DecisionPoint {
  /// Unset: a value that is no collective's.
  std::optional<dist::CollectiveKind> kind;
  bool isGather() const { return kind && dist::isGather(*kind); }
  bool isReduction() const { return kind && dist::isReduction(*kind); }
  /// The first parameter that a collective moves; empty if none.
  std::string parameter;
  /// Of its parameter in the module, the order inside a bucket.
  unsigned order = 0;
  /// Computed in the forward pass, and used in the backward pass or by what can
  /// be computed again there.
  bool canRecompute = false;
  /// It can be, and only its block uses it in the forward pass.
  bool staysInBlock = false;
  /// So can it, in one pass over values that the backward pass uses anyway or
  /// that are free themselves: silu of a linear, norms.
  bool isFree = false;
  /// Of an op, counted in its program.
  unsigned place = 0;
  /// Of a reduction over the ranks of one machine: the place and the address of
  /// the op before which so much has been computed since that the reduction is
  /// over. Empty where there is none.
  unsigned overPlace = 0;
  std::string overBefore;
};

using dist::Decision;

/// An op of which a point is, and that point as it is in the op's own program.
struct DecidableOp {
  mlir::Operation *op;
  dist::OriginAttr origin;
  DecisionPoint point;
};

/// Everything that a plan can name in a module, in the order of its programs: a
/// gather of the forward pass that the backward pass uses stands for the one
/// "again" too.
class DecisionPoints {
public:
  explicit DecisionPoints(mlir::ModuleOp module);

  const llvm::MapVector<dist::OriginAttr, DecisionPoint> &all() const {
    return points;
  }
  /// The ops that something can be decided about, program by program: the same
  /// address may be there once for each.
  llvm::ArrayRef<DecidableOp> ops() const { return decidable; }
  /// Every address of the module: where a collective may start or be awaited.
  const llvm::StringSet<> &addresses() const { return anchors; }
  /// The parameters of the module in registration order.
  llvm::ArrayRef<llvm::StringRef> parameters() const { return names; }
  /// The parameter that the forward pass of a program gathers and then uses
  /// last; empty if there is none.
  llvm::StringRef usedLast() const { return last; }

private:
  void add(mlir::Block &program);
  void findWhereReductionsAreOver(mlir::Block &program);

  dist::MeshOp mesh;
  llvm::StringSet<> anchors;
  llvm::MapVector<dist::OriginAttr, DecisionPoint> points;
  std::vector<DecidableOp> decidable;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringMap<unsigned> orderOf;
  llvm::StringRef last;
};

/// The origin of the bucket that a collective of `origin` is in:
/// "fwd layers.3 all_gather". Its own if it is in none. Refers to both.
dist::Origin bucketOf(dist::OriginAttr origin, const Decision &decision);

/// What must be equal for collectives to become one: the kind, every attribute
/// (mesh, axes, dimension, reduction) and the element types.
using MergeKey =
    std::tuple<mlir::OperationName, mlir::Attribute, mlir::Type, mlir::Type>;
MergeKey mergeKeyOf(mlir::Operation *collective);

/// What of `decision` can be decided about `point`.
Decision aboutPoint(Decision decision, const DecisionPoint &point);

/// What of `decision` is about a collective itself, which members of a bucket
/// share, and not about the values that it gives.
Decision aboutCollective(Decision decision);

/// A text as a glob of a plan that matches it alone.
std::string escapedGlob(llvm::StringRef text);

/// A plan made ready to be asked about single ops.
class Rules {
public:
  /// Fails where a glob is none.
  static llvm::Expected<Rules> compile(Plan plan);

  /// Puts what the plan says of an op over `decision`.
  void decide(dist::OriginAttr origin, const DecisionPoint &point,
              Decision &decision) const;

private:
  friend class Decisions;
  /// What one rule matches. A text without wildcards is looked up, not tried:
  /// a plan in full names each of as many ops as a loss has chunks.
  struct Match {
    llvm::StringSet<> names;
    std::vector<std::pair<std::string, llvm::GlobPattern>> globs;

    /// Calls `visit` with each text that matches `address`, until it returns
    /// true; gives whether it did.
    bool any(llvm::StringRef address,
             llvm::function_ref<bool(llvm::StringRef)> visit) const;
  };

  Plan plan;
  std::vector<Match> matches; // of each rule
};

/// What is decided about each point of a module, by its origin.
class Decisions {
public:
  /// By rule: parameters of a unit are gathered, dropped and reduced together.
  static Decisions byRule(const DecisionPoints &points,
                          const PlannerOptions &options);
  /// With what `plan` says over it, as apply() does.
  static llvm::Expected<Decisions> byRule(const DecisionPoints &points,
                                          const PlannerOptions &options,
                                          std::optional<Plan> plan);

  /// Puts what `plan` says over what was decided before. An error names the
  /// place in the plan and, for a wrong address, the nearest right one.
  llvm::Error apply(Plan plan, const DecisionPoints &points);

  /// All of it as rules: one for what blocks have in common, then exceptions.
  Plan plan(const DecisionPoints &points) const;

  /// Writes on every op of `module`, which `points` is of, what is decided
  /// about it (fsdp.decision); takes it from all others.
  void stamp(mlir::ModuleOp module, const DecisionPoints &points) const;

  const Decision &operator[](dist::OriginAttr origin) const {
    return decisions.find(origin)->second;
  }

private:
  llvm::Error applyRule(const Rules &rules, size_t index,
                        const DecisionPoints &points);
  llvm::Error checkBuckets(const DecisionPoints &points) const;
  llvm::StringSet<> bucketAddresses(const DecisionPoints &points) const;
  /// What is wrong with an address that a collective starts after or is
  /// awaited before; empty if nothing is.
  std::string checkAnchor(llvm::StringRef anchor,
                          const DecisionPoints &points) const;

  /// In the order of DecisionPoints::all().
  llvm::MapVector<dist::OriginAttr, Decision> decisions;
};

/// Whether `plan` says of any value, other than a gathered parameter, whether
/// it is computed again.
bool saysOfValues(const Plan &plan, const DecisionPoints &points);

/// Makes sure that the ops of `module` have their decisions: where none has
/// one, the plan was written by hand, without fsdp-plan, and is all that is
/// decided. Emits an error if there is no plan either, or if it is not well
/// formed.
mlir::LogicalResult ensureDecisions(mlir::ModuleOp module);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_DECISIONS_H
