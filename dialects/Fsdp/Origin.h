//===- Origin.h - Where in a program something comes from -------*- C++ -*-===//
//
// An origin is a phase of the program, the path of a module, parameter or
// bucket, and an op there. Its words are what people, plans and artifacts call
// the thing:
//
//   fwd layers.3.attention.wq linear   a product of the forward pass
//   again layers.3.wq all_gather       computed a second time, after nn.seed
//   bwd layers.3 rotary_grad#2         the second op of that name
//   fwd sum                            an op of the root
//   fwd layers.3                       without an op: all of the path
//
// Ops have #fsdp.origin<"…"> (FsdpAttrs.td). Only the functions here make these
// words or take them apart; what a path is, is said by
// dialects/NN/ModulePath.h.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_FSDP_ORIGIN_H
#define FSDP_DIALECTS_FSDP_ORIGIN_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fsdp::dist {

/// When something of a program is computed.
enum class Phase {
  Forward,  ///< "fwd": before nn.seed
  Again,    ///< "again": as in the forward pass, a second time, after nn.seed
  Backward, ///< "bwd": after nn.seed
  Update,   ///< "update": what the optimizer does
};

llvm::StringRef stringifyPhase(Phase phase);

/// The phase of an op of module `path`.
Phase phaseOf(llvm::StringRef path, bool afterSeed);

/// Does not own its texts.
struct Origin {
  Phase phase = Phase::Forward;
  /// Of a module, parameter or bucket; empty for the root.
  llvm::StringRef path;
  /// The mnemonic of the op, but "dx" and "dw" for what reverse rules make of
  /// an input and a weight; empty: all of the path.
  llvm::StringRef op;
  /// Tells ops of one name apart, from 1.
  unsigned index = 1;

  /// "fwd layers.3.attention.wq linear#2".
  std::string str() const;

  /// The same thing computed again in the backward pass.
  Origin again() const { return {Phase::Again, path, op, index}; }

  /// Whether str() is read back as this: of an op with a name of one word, or
  /// of a path without a number.
  bool isValid() const;

  bool operator==(const Origin &other) const {
    return phase == other.phase && path == other.path && op == other.op &&
           index == other.index;
  }
};

/// The origin of an op, of its words; str() gives these back, letter by letter.
/// Fails, and says why, unless 1. they begin with a phase and a space; 2. the
/// path, if there is one, is not empty; 3. the op has a name, without '#'; 4.
/// the number, if there is one, is written without leading zeros and from 2 to
/// 2^32 - 1. The result refers to `words`.
llvm::Expected<Origin> parseOrigin(llvm::StringRef words);

/// The same for all of a path: 2. which is not empty, and has no op after it.
llvm::Expected<Origin> parseOriginOfPath(llvm::StringRef words);

} // namespace fsdp::dist

#endif // FSDP_DIALECTS_FSDP_ORIGIN_H
