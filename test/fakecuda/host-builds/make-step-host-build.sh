#!/bin/sh
# Makes the twins of a generated step's kernels:
#
#   make-step-twins.sh STEP.cu TWINS.so SOURCE_DIR
#
# STEP.cu is what `fsdp-compile --emit=cuda` prints. fsdp-fake-device loads the
# library when FSDP_FAKECUDA_TWINS names it.
set -e
step=$1 twins=$2 source=$3
kernels=$(sed -n 's/^__global__ void \([A-Za-z0-9_]*\)(.*/\1/p' "$step" | paste -sd, -)
test -n "$kernels" || { echo "$step has no kernel" >&2; exit 1; }
{
  echo "#include \"$step\""
  echo '#include "test/fakecuda/twins/Twin.h"'
  echo "static fsdp::fake::Twins<$kernels> twins;"
} > "$twins.cpp"
# Only kernels are called, never the program that issues them: what it calls
# stays undefined. The device has names of its own.
g++ -std=c++17 -O2 -ffp-contract=off -Wall -Werror -fPIC -shared -Wl,-Bsymbolic \
  -I"$source/include" -I"$source" -include "$source/test/shim/CudaShim.h" \
  -o "$twins" "$twins.cpp"
