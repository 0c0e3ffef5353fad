//===- RecomputeOptions.h - What recomputing costs and saves ----*- C++ -*-===//
//
// What may be computed again inside the blocks of a program, and what each set
// of it keeps, works with and costs: by the order and the live bytes of the
// whole program, in which the blocks of a class have a different set each, so
// that one evaluation measures as many sets as there are blocks.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_RECOMPUTEOPTIONS_H
#define FSDP_SCHEDULE_RECOMPUTEOPTIONS_H

#include "fsdp/Machine/CostModel.h"
#include "fsdp/Schedule/Frontier.h"
#include "fsdp/Schedule/ProblemLive.h"

namespace fsdp::problem {

/// A set of Block::ops: bit i is op i.
using OpSet = uint64_t;

struct Block {
  Id name = kNone;
  /// What may be computed again and only the block uses in the forward pass,
  /// in order; at most 64.
  std::vector<Id> ops;
};

/// The blocks of a program that is trained, in the order of its forward pass.
struct Blocks {
  size_t program = 0;
  std::vector<Block> all;
  /// Classes of one structure, a number for each block.
  std::vector<uint32_t> classOf;
};

/// Throws fsdp::Error if a block has more than 64 such ops.
Blocks blocksOf(const Problem &problem, size_t program);

/// The program with a backward pass whose peak is the largest under
/// `candidate`; none if no program has one.
std::optional<size_t> trainedProgram(const Problem &problem,
                                     const Candidate &candidate);

/// An op of a problem.
struct OpOfProgram {
  size_t program = 0;
  Id op = kNone;
};

/// Needs the bytes of an option, and takes longer by so much in each block.
struct SlowerSet {
  uint32_t option = 0;
  Duration more;
};

/// Chain and sets: set number i of class c is what option i of it computes
/// again, and the sets after those of its options are `slower`.
struct RecomputeOptions {
  Blocks blocks;
  BlockChain chain;
  std::vector<std::vector<OpSet>> sets;
  uint32_t common = 0; ///< The class with the most blocks.
  /// Those of its sets that follow the ones of options: whatever computes a
  /// little more again may leave fewer gaps between buffers.
  std::vector<SlowerSet> slower;
  /// Of each of Block::ops of each block: where it is, in every program with a
  /// backward pass.
  std::vector<std::vector<std::vector<OpOfProgram>>> places;
};

/// All sets of each class that no other one beats, and slower ones. `base`
/// decides about all else, and recomputes nothing of blocks. Throws fsdp::Error
/// if the program is no chain of blocks, or `base` cannot be applied. `cost`
/// says how long they compute; `threads` measure them.
RecomputeOptions recomputeOptions(const Problem &problem, const Candidate &base,
                                  Blocks blocks, const CostModel &cost,
                                  int threads = 1);

/// `base`, and of each block the set number choice[block] of its class computed
/// again, in every program with a backward pass.
Candidate withRecomputation(const Candidate &base,
                            const RecomputeOptions &options,
                            const std::vector<uint32_t> &choice);

/// A choice that is alike in all blocks for each of `sets` of the class with
/// the most: another class has the option that differs in the fewest ops, by
/// name.
std::vector<std::vector<uint32_t>>
uniformChoices(const Problem &problem, const RecomputeOptions &options,
               const std::vector<uint32_t> &sets);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_RECOMPUTEOPTIONS_H
