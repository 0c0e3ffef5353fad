//===- LlamaTensors.cpp - The tensors of Llama ----------------------------===//
#include "../DecoderTensors.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

TensorRows checkpoint::llamaTensors() {
  return decoderTensors({attentionTensors(AttentionBiases::None),
                         feedForwardTensors(), layerNormTensors()});
}
