"""The lit test suite. Run it with `ninja -C build check-fsdp`, or one file with
`lit -v build/test --filter NAME`.

A build folder's first run takes the order of its tests, the longest first, from
.lit_test_times.txt beside this file; later runs know their own times."""
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import lit.formats

config.name = "fsdp"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "unit", "golden"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fsdp_build_dir, "test")

bin_dir = os.path.join(config.fsdp_build_dir, "bin")
path = [bin_dir, config.llvm_tools_dir or "/usr/lib/llvm-22/bin", os.environ["PATH"]]
config.environment["PATH"] = os.pathsep.join(path)
for name in ("HOME", "OMP_NUM_THREADS", "FSDP_SEED", "FSDP_MUTATIONS",
             "FSDP_FAKECUDA_SEEDS", "FSDP_COVERING_ROWS", "FSDP_ALL_FAMILIES", "SLURM_CONF"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
# Not the user's: what is known of a machine decides what is timed.
config.environment["FSDP_CACHE_DIR"] = os.path.join(config.test_exec_root, "machine-cache")
# mpirun and OpenMP must not fight for the two cores of a small machine.
config.environment.setdefault("OMP_NUM_THREADS", "1")

# Python tests share test/support, and some artifacts (support/cache.py). Not by the
# environment: after lit's own cat and diff it has another PYTHONPATH. lit's own
# interpreter, since what PATH has may be a script that takes long to find one.
config.substitutions.append((r"(?<![\w./-])python3(?= )",
                             f"env PYTHONPATH={config.test_source_root} {sys.executable}"))
if os.environ.get("FSDP_TEST_NO_CACHE", "0") == "0":
    config.environment["FSDP_TEST_CACHE"] = os.path.join(config.test_exec_root, "cache")
lit_config.note("artifacts of several tests are " + (
    "compiled once" if "FSDP_TEST_CACHE" in config.environment else
    "compiled by each (FSDP_TEST_NO_CACHE)"))

config.substitutions.append(("%source", config.fsdp_source_dir))
config.substitutions.append(("%build", config.fsdp_build_dir))
config.substitutions.append(("%llvm_include", config.llvm_include_dir))
# FSDP_VERIFY_ROUNDTRIP=1 repeats every fsdp-opt run with a parse-print round trip.
if os.environ.get("FSDP_VERIFY_ROUNDTRIP"):
    # Only the command: --fsdp-optimizer is an option.
    config.substitutions.append((r"(?<![\w-])fsdp-opt(?![\w-])", "fsdp-opt --verify-roundtrip"))
# A CPU that can multiply bf16 itself, fast or not.
with open("/proc/cpuinfo") as cpuinfo:
    if "avx512_bf16" in cpuinfo.read():
        config.available_features.add("native-bf16")
if config.have_cuda == "1":
    config.available_features.add("cuda")
# What tools/fsdp-tokenize needs.
if all(map(importlib.util.find_spec, ("jinja2", "tokenizers", "xxhash"))):
    config.available_features.add("tokenizers")
# Launchers of others, where they are.
if shutil.which("torchrun"):
    config.available_features.add("torchrun")


def slurm_is_this_machine():
    """Not a cluster, where tests would wait for their turn and run elsewhere."""
    try:
        nodes = subprocess.run(["sinfo", "--noheader", "--format=%n"], timeout=60,
                               capture_output=True, text=True).stdout.split()
    except (OSError, subprocess.TimeoutExpired):
        return False
    return set(nodes) == {platform.node().split(".")[0]}


if shutil.which("srun") and slurm_is_this_machine():
    config.available_features.add("slurm")
if config.have_fuzzers == "1":
    config.available_features.add("fuzzers")
if config.sanitize == "ON":
    config.available_features.add("sanitize")
    # A process has the sanitizers of one compiler.
    config.environment["FSDP_TEST_CXX"] = config.cxx
else:
    config.available_features.add("count-allocations")
