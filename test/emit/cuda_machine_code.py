"""What ptxas says of kernels: none may keep anything in local memory.

    cuda_machine_code.py --gpu sm_90 --include DIR FILE.cu...

Prints one line per file. Ends with an error for a kernel with a stack frame (an
array that is indexed, a function that is called) or with registers that do not
suffice, and for powers, whose bits differ from one library to another.
"""
import argparse
import os
import re
import subprocess
import sys


def report_of(source, gpu, includes):
    # The options of the artifact's and of the runtime's build that bear on code.
    command = ["nvcc", "-std=c++17", "-O3", "-arch=" + gpu, "-fmad=false", "-cubin",
               "-Xptxas", "-v", "-o", os.devnull, source]
    command += ["-I" + folder for folder in includes]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0 or "warning" in result.stderr:
        sys.exit(f"{source}, {gpu}: {result.stdout}{result.stderr}")
    return result.stderr


def check(source, gpu, includes):
    """Prints what is bad and returns how much that is."""
    report = report_of(source, gpu, includes)
    kernels = re.findall(r"Compiling entry function '([^']*)'", report)
    functions = re.findall(r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, "
                           r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", report)]
    if not kernels or len(functions) < len(kernels) or len(registers) != len(kernels):
        sys.exit(f"{source}, {gpu}: ptxas reports {len(kernels)} kernels, of them "
                 f"{len(functions)} with properties:\n{report}")
    bad = 0
    for name, *sizes in functions:
        if any(int(size) for size in sizes):
            print(f"{source}, {gpu}: {name}: {sizes[0]} bytes of stack, {sizes[1]} spilled")
            bad += 1
    if "pow" in report:
        print(f"{source}, {gpu}: a kernel calls pow()")
        bad += 1
    print(f"{os.path.basename(source)}, {gpu}: {len(kernels)} kernels, at most {max(registers)} "
          "registers")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="append", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    bad = sum(check(source, gpu, options.include)
              for gpu in options.gpu for source in options.sources)
    sys.exit(f"{bad} faults" if bad else 0)


if __name__ == "__main__":
    main()
