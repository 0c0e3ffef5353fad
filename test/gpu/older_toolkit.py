"""Whether the CUDA target's sources compile for an older CUDA Toolkit.

    older_toolkit.py BUILD FOLDER

FOLDER gets headers and ptxas of CUDA 12.8 from PyPI (0.7 GB) unless it has them. PyPI has no
nvcc of that version: g++ compiles what runs on hosts as in the folder BUILD, clang the kernels
to PTX, and ptxas that for sm_90. Libraries are not linked and nothing is run. Not run by
default, because of the download."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

WHEELS = ("nvidia-cuda-runtime-cu12==12.8.90", "nvidia-cublas-cu12==12.8.4.1",
          "nvidia-cuda-nvrtc-cu12==12.8.93", "nvidia-nvtx-cu12==12.8.90",
          "nvidia-cuda-nvcc-cu12==12.8.93")
CLANG = "/usr/lib/llvm-22/bin/clang++"


def fetched(folder):
    """A toolkit as clang expects it, without nvcc."""
    toolkit = os.path.join(folder, "toolkit")
    if os.path.exists(toolkit):
        return toolkit
    partial = toolkit + ".partial"
    shutil.rmtree(partial, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--quiet",
                    "--dest", folder, *WHEELS], check=True)
    for wheel in glob.glob(os.path.join(folder, "*.whl")):
        with zipfile.ZipFile(wheel) as archive:
            for member in archive.infolist():
                # nvidia/PACKAGE/include/...
                parts = member.filename.split("/")
                if len(parts) < 4 or parts[2] not in ("include", "bin", "nvvm") \
                        or member.is_dir():
                    continue
                place = os.path.join(partial, *parts[2:])
                os.makedirs(os.path.dirname(place), exist_ok=True)
                with open(place, "wb") as file:
                    file.write(archive.read(member))
    os.chmod(os.path.join(partial, "bin", "ptxas"), 0o755)
    os.rename(partial, toolkit)
    return toolkit


def host_command(entry, toolkit, libraries):
    """The command of the build with other headers. Those of cuDNN and NCCL, which do not
    depend on the toolkit, lie beside the newer one's: only they are seen."""
    command = re.sub(r"-(isystem|I) ?\S*/cuda(-[\d.]+)?/\S*", "", entry["command"])
    command = re.sub(r"-o \S+", "-fsyntax-only", command)
    return f"{command} -isystem {toolkit}/include -isystem {libraries}"


def links_of_libraries(folder):
    """A folder with the headers of cuDNN and NCCL alone."""
    place = os.path.join(folder, "libraries")
    os.makedirs(place, exist_ok=True)
    for header in glob.glob("/usr/local/cuda/include/cudnn*.h") \
            + ["/usr/local/cuda/include/nccl.h"]:
        link = os.path.join(place, os.path.basename(header))
        if not os.path.exists(link):
            os.symlink(header, link)
    return place


def device_commands(entry, toolkit, folder, root):
    ptx = os.path.join(folder, os.path.basename(entry["file"]) + ".ptx")
    return [f"{CLANG} -x cuda --cuda-path={toolkit} --cuda-gpu-arch=sm_90 --cuda-device-only "
            f"-std=c++17 -O3 -ffp-contract=off -I{root} -I{root}/include -S {entry['file']} "
            f"-o {ptx}",
            f"{toolkit}/bin/ptxas -arch=sm_90 {ptx} -o /dev/null"]


def main():
    build, folder = map(os.path.abspath, sys.argv[1:])
    os.makedirs(folder, exist_ok=True)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    toolkit, libraries = fetched(folder), links_of_libraries(folder)
    with open(os.path.join(build, "compile_commands.json")) as file:
        entries = [entry for entry in json.load(file)
                   if re.search("/(runtime/cuda|test/gpu)/", entry["file"])]
    failed = 0
    for entry in entries:
        commands = device_commands(entry, toolkit, folder, root) \
            if entry["file"].endswith(".cu") else [host_command(entry, toolkit, libraries)]
        for command in commands:
            done = subprocess.run(command, shell=True, cwd=entry["directory"], text=True,
                                  stderr=subprocess.PIPE)
            if done.returncode != 0:
                failed += 1
                print(f"{os.path.relpath(entry['file'], root)}:\n{done.stderr[:2000]}")
                break
    print(f"{len(entries)} sources for CUDA 12.8, {failed} of them do not compile")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
