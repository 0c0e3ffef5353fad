#!/bin/sh
# Compiles training steps (bf16, 8 ranks) for a GPU, without a warning, and
# looks at their machine code:
#
#   cuda-steps.sh FOLDER SOURCE_DIR GPU FLAVOR...
#
# The tests take some of them; all are
#
#   for gpu in sm_80 sm_90 sm_100; do
#     sh test/emit/cuda-steps.sh /tmp/steps . $gpu debugmodel 1B 8B
#   done
set -e
folder=$1 source=$2 gpu=$3
shift 3
mkdir -p "$folder"
for flavor; do
  step="$folder/$flavor-$gpu"
  settings="--model.flavor $flavor --training.mixed_precision_param bfloat16
    --training.local_batch_size 1 --training.seq_len 512 --ranks 8 --target=cuda --gpu $gpu"
  fsdp-compile $settings -o "$step" > "$step.log" 2>&1 || { cat "$step.log"; exit 1; }
  cat "$step.log"
  if grep -q warning "$step.log"; then
    echo "$flavor, $gpu: nvcc warns"
    exit 1
  fi
  fsdp-compile $settings --emit=cuda -o "$step.cu"
  python3 "$source/test/emit/cuda_machine_code.py" --gpu "$gpu" --include "$source/include" "$step.cu"
done
