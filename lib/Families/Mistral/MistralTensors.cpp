//===- MistralTensors.cpp - The tensors of Mistral ------------------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

TensorRows checkpoint::mistralTensors() { return llamaTensors(); }
