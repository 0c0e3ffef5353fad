//===- Nesting.h - A bound on the depth of a text ---------------*- C++ -*-===//
//
// MLIR's parser, printer and passes recurse into regions, attributes and
// types. A text that nests deeper than any stack ends them without a word, so
// that tools look at a text before they parse it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_INPUT_NESTING_H
#define FSDP_INPUT_NESTING_H

#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace fsdp {

/// What compilers write nests a dozen brackets.
inline constexpr int kMaxNesting = 256;

/// Fails, with the place, if `text` has a control character, which messages
/// that show its lines would send to the terminal, or nests too deep. Of
/// bytecode nothing is checked.
llvm::Error checkText(llvm::MemoryBufferRef text);

/// Fails, with the place, if brackets or signs of `text` nest deeper than
/// kMaxNesting. Linear in the text; MLIR bytecode is not text and passes.
llvm::Error checkNesting(llvm::MemoryBufferRef text);

} // namespace fsdp

#endif // FSDP_INPUT_NESTING_H
