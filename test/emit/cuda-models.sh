#!/bin/sh
# Emits CUDA source of every model of the library (bf16, 8 ranks) that is named
# in a file, one on a line:
#
#   cuda-models.sh MODELS
set -e
while read -r model; do
  case $model in
  *mlp*) size="" ;;
  *) size="--batch 8 --seq 256" ;;
  esac
  # Not a pipe, which would hide that the first program fails.
  text=$(fsdp-trace "$model" $size)
  kernels=$(printf '%s\n' "$text" | fsdp-compile - --mesh dp_shard=8 \
    --training.mixed_precision_param bfloat16 --emit=cuda | grep -c '^__global__')
  echo "$model: $kernels kernels"
done < "$1"
