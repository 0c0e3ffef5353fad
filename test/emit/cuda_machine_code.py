"""What ptxas says of kernels: none may keep anything in local memory.

    cuda_machine_code.py --gpu sm_90 --include DIR FILE.cu...
    cuda_machine_code.py --gpu sm_90 --compiled LOG KEPT FILE.cu

Prints one line per file. The second form compiles nothing: LOG has what nvcc
-Xptxas -v said of the file, KEPT what its --keep has left. Ends with an error for a kernel with a stack frame (an
array that is indexed, a function that is called) or with registers that do not
suffice, for powers, whose bits differ from one library to another, for a vector
of a generated kernel that is not accessed 16 bytes at a time, and for numbers
that are rounded to bf16 by integers.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile


def report_of(source, gpu, includes):
    """The report, and the text that ptxas has read."""
    with tempfile.TemporaryDirectory() as folder:
        # The options of the artifact's and of the runtime's build that bear on code.
        command = ["nvcc", "-std=c++17", "-O3", "-arch=" + gpu, "-fmad=false", "-cubin",
                   "-Xptxas", "-v", "--keep", "--keep-dir", folder, "-o", os.devnull, source]
        command += ["-I" + include for include in includes]
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode != 0 or "warning" in result.stderr:
            sys.exit(f"{source}, {gpu}: {result.stdout}{result.stderr}")
        return result.stderr, ptx_in(folder)


def ptx_in(folder):
    [name] = [name for name in os.listdir(folder) if name.endswith(".ptx")]
    with open(os.path.join(folder, name)) as text:
        return text.read()


def kernels_of(ptx):
    """The text of every kernel by its mangled name."""
    return {part.split("(")[0].strip(): part for part in re.split(r"\.entry ", ptx)[1:]}


def vectors(source, kernels):
    """Prints the generated kernels whose vectors are not whole accesses."""
    bad = 0
    with open(source) as file:
        text = file.read()
    for name, body in re.findall(r"__global__ void (k_\w+)\((.*?)\n}\n", text, re.S):
        [ptx] = [ptx for mangled, ptx in kernels.items()
                 if mangled.startswith(f"_Z{len(name)}{name}")]
        for access, spelled in (("ld", "gpu::load<"), ("st", "gpu::store(")):
            wide = len(re.findall(access + r"\.global(?:\.nc)?\.v[24]\.[uf](?:32|64)", ptx))
            if wide < body.count(spelled):
                print(f"{source}: {name}: {wide} of {body.count(spelled)} vectors by {access}")
                bad += 1
    return bad


def check(source, gpu, report, ptx):
    """Prints what is bad and returns how much that is."""
    kernels = re.findall(r"Compiling entry function '([^']*)'", report)
    functions = re.findall(r"Function properties for (\S+)\n\s*(\d+) bytes stack frame, "
                           r"(\d+) bytes spill stores, (\d+) bytes spill loads", report)
    registers = [int(count) for count in re.findall(r"Used (\d+) registers", report)]
    if not kernels or len(functions) < len(kernels) or len(registers) != len(kernels):
        sys.exit(f"{source}, {gpu}: ptxas reports {len(kernels)} kernels, of them "
                 f"{len(functions)} with properties:\n{report}")
    texts = kernels_of(ptx)
    bad = vectors(source, texts)
    for name, *sizes in functions:
        if any(int(size) for size in sizes):
            print(f"{source}, {gpu}: {name}: {sizes[0]} bytes of stack, {sizes[1]} spilled")
            bad += 1
    if "pow" in report:
        print(f"{source}, {gpu}: a kernel calls pow()")
        bad += 1
    if ", 32767;" in ptx:
        print(f"{source}, {gpu}: a kernel rounds to bf16 by integers")
        bad += 1
    wide = sum(bool(re.search(r"(ld|st)\.global(\.nc)?\.(v4|v2\.[uf]64)", text))
               for text in texts.values())
    print(f"{os.path.basename(source)}, {gpu}: {len(kernels)} kernels, at most {max(registers)} "
          f"registers, {wide} with accesses of 16 bytes")
    return bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpu", action="append", required=True)
    parser.add_argument("--include", action="append", default=[])
    parser.add_argument("--compiled", nargs=2, metavar=("LOG", "KEPT"))
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    if options.compiled:
        log, kept = options.compiled
        [gpu], [source] = options.gpu, options.sources
        with open(log) as file:
            bad = check(source, gpu, file.read(), ptx_in(kept))
    else:
        bad = sum(check(source, gpu, *report_of(source, gpu, options.include))
                  for gpu in options.gpu for source in options.sources)
    sys.exit(f"{bad} faults" if bad else 0)


if __name__ == "__main__":
    main()
