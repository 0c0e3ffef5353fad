//===- LlamaFamily.h - The table of Llama -----------------------*- C++ -*-===//
#ifndef FSDP_FAMILIES_LLAMAFAMILY_H
#define FSDP_FAMILIES_LLAMAFAMILY_H

#include "fsdp/Families/Families.h"

namespace fsdp::checkpoint {

/// Llama 2, 3 and CodeLlama: they differ in sizes alone.
Family llamaFamily();

} // namespace fsdp::checkpoint

#endif // FSDP_FAMILIES_LLAMAFAMILY_H
