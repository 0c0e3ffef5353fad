#!/bin/sh
# Makes an artifact for the CPU from generated CUDA source:
#
#   step-on-host.sh STEP.cu ARTIFACT SOURCE_DIR BUILD_DIR
#
# Emitted kernels and the CUDA runtime's own kernels run through CudaShim.h;
# matmuls, attention and collectives are the CPU runtime's.
set -e
step=$1 artifact=$2 source=$3 build=$4
flags="-std=c++17 -O2 -ffp-contract=off -Wall -Werror -fPIC -I$source/include -I$source"
shim="-include $source/test/shim/CudaShim.h"
mkdir -p "$artifact"
# The loader refuses code for GPUs, which this no longer is.
sed 's/sm_90, nvcc [0-9.]*/host, shim/' "$step" > "$artifact/step.cu"
sed -n '/R"json(/,/)json"/p' "$artifact/step.cu" |
  sed 's/.*R"json(//; s/)json";//' > "$artifact/manifest.json"
# The same for every artifact of a folder.
runtime=$(dirname "$artifact")/runtime-on-host.o
test -f "$runtime" || g++ $flags $shim -c -o "$runtime" "$source/test/shim/RuntimeOnHost.cpp"
# -Bsymbolic: the runtime's kernels in here come before the CPU runtime's.
g++ $flags $shim -shared -Wl,-Bsymbolic -o "$artifact/step.so" -x c++ "$artifact/step.cu" \
  -x none "$runtime" -L"$build/lib" -lfsdp_runtime
PYTHONPATH="$source/test" python3 -c 'import sys; from support import files; files.write_checksum(sys.argv[1])' "$artifact"
