"""Kernels of emitted CUDA that take single elements though their rows are whole
vectors: where one launch hands down a buffer that begins within 16 bytes.

usage: fsdp-compile --emit=cuda ... | cuda_vectorized_access.py"""
import re
import sys

MOST = 8  # neighbours of a vector

kernels = re.split(r"(?=^__global__ void )", sys.stdin.read(), flags=re.M)[1:]
single = []
for kernel in kernels:
    name = re.search(r"void (\w+)\(", kernel).group(1)
    columns = re.search(r"\bcols = (\d+)", kernel)
    if not columns:
        sys.exit(f"{name}: no columns\n{kernel}")
    # Blocks of rows are added by a thread per column.
    adds_blocks = re.search(r"math::\w+Blocks\(", kernel)
    if int(columns.group(1)) % MOST == 0 and not adds_blocks \
            and not re.search(r"gpu::(load<|store\()", kernel):
        single.append(name)
print(f"{len(kernels)} kernels, by single elements: {', '.join(single) or 'none'}")
