#!/bin/sh
# Makes the host builds of a generated step's kernels:
#
#   make-step-host-build.sh STEP.cu HOST_BUILDS.so SOURCE_DIR
#
# STEP.cu is what `fsdp-compile --emit=cuda` prints. fsdp-fake-device loads the
# library when FSDP_FAKECUDA_TWINS names it.
set -e
step=$1 builds=$2 source=$3
kernels=$(sed -n 's/^__global__ void \([A-Za-z0-9_]*\)(.*/\1/p' "$step" | paste -sd, -)
test -n "$kernels" || { echo "$step has no kernel" >&2; exit 1; }
{
  echo "#include \"$step\""
  echo '#include "test/fakecuda/host-builds/HostBuild.h"'
  echo "static fsdp::fake::HostBuilds<$kernels> hostBuilds;"
} > "$builds.cpp"
# Only kernels are called, never the program that issues them: what it calls
# stays undefined. The device has names of its own.
g++ -std=c++17 -O2 -ffp-contract=off -Wall -Werror -fPIC -shared -Wl,-Bsymbolic \
  -DFSDP_SHIM_KERNELS_ALONE -I"$source/include" -I"$source" -include "$source/test/shim/CudaShim.h" \
  -o "$builds" "$builds.cpp"
