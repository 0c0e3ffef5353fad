//===- LlamaFamily.h - The table of Llama -----------------------*- C++ -*-===//
#ifndef FSDP_CHECKPOINT_LLAMAFAMILY_H
#define FSDP_CHECKPOINT_LLAMAFAMILY_H

#include "Families.h"

namespace fsdp::checkpoint {

/// Llama 2, 3 and CodeLlama: they differ in sizes alone.
Family llamaFamily();

} // namespace fsdp::checkpoint

#endif // FSDP_CHECKPOINT_LLAMAFAMILY_H
