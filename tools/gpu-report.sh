#!/bin/bash
# Checks and measures the CUDA target on a machine with a GPU: correctness of
# libraries, kernels and training, then speed, PyTorch in the same run.
#
#   tools/gpu-report.sh prepare              where the compiler is (no GPU needed)
#   tools/gpu-report.sh correctness          where a GPU is
#   tools/gpu-report.sh speed
#   tools/gpu-report.sh train kill           single stages
#
# `prepare` puts programs and artifacts in a folder (out/gpu-report) that can be
# carried to a machine that has neither MLIR nor a C++ compiler. Stages leave
# report.json and report.md there; one that fails does not keep the next from
# running. --help lists them.
exec python3 "$(dirname "${BASH_SOURCE[0]}")/gpu-report/main.py" "$@"
