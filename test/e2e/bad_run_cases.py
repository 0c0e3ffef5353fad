"""The cases of bad_input.py that a run meets: what is wrong, and what is said
about it."""
import glob
import os
import shutil
import signal
import struct

from bad_case import Case
from support import commands, files, processes
from support.files import write
from support.tensors import encoded


#===------------------------------------------------------------------------===#
# Input that is made
#===------------------------------------------------------------------------===#

def changed_artifact(given, name, change):
    """A copy of the good artifact after `change(folder)`."""
    folder = f"{given}/{name}"
    shutil.copytree(f"{given}/artifact", folder)
    change(folder)
    return folder


def change_manifest(change):
    return lambda folder: files.change_json(f"{folder}/manifest.json", change)


def replace_library(source):
    """Compiles `source` in place of the artifact's library."""
    def apply(folder):
        write(f"{folder}/step.cpp", source)
        commands.run("g++", "-shared", "-fPIC", f"{folder}/step.cpp", "-o",
                     f"{folder}/step.so")
        files.write_checksum(folder)
    return apply


def hide_library(given, name):
    """A copy of fsdp-run, its ranks and their runtime in which library `name`
    is called by another name, of the same length, that no file has."""
    tools = os.path.dirname(os.path.realpath(shutil.which("fsdp-run")))
    runtime = f"{os.path.dirname(tools)}/lib/libfsdp_runtime.so"
    copy = f"{given}/without-{name}"
    for source, folder in ((f"{tools}/fsdp-run", "bin"),
                           (f"{tools}/fsdp-rank-cpu", "bin"), (runtime, "lib")):
        os.makedirs(f"{copy}/{folder}", exist_ok=True)
        with open(source, "rb") as file:
            content = file.read()
        to = write(f"{copy}/{folder}/{os.path.basename(source)}",
                   content.replace(name.encode() + b"\0",
                                   b"gone" + name[4:].encode() + b"\0"))
        os.chmod(to, 0o755)
    return f"{copy}/bin/fsdp-run"


def wait_for_steps(process):
    """False if the job has ended before its second, which the caller will not like."""
    steps = 0
    while steps < 2:
        line = process.stdout.readline()
        if not line:
            return False
        steps += line.startswith("step:")
    return True


def signal_rank(rank, number):
    """Sends a signal to one rank in the middle of its training."""
    def process_of(folder):
        wanted = {"RANK": str(rank), "TMPDIR": f"{folder}/tmp"}.items()
        for pid in processes.everybody():
            if wanted <= processes.variables(pid).items():
                return pid
        raise ProcessLookupError(f"there is no rank {rank}")

    def apply(process, folder):
        if not wait_for_steps(process):
            return
        os.kill(process_of(folder), number)
    return apply


#===------------------------------------------------------------------------===#
# Cases
#===------------------------------------------------------------------------===#

def manifest_folder(folder):
    os.remove(f"{folder}/manifest.json")
    os.mkdir(f"{folder}/manifest.json")


def manifest_twice(folder):
    path = f"{folder}/manifest.json"
    write(path, files.read(path).replace("{", '{"format": 1,', 1))


def artifact_cases(given, run):
    def damaged(name, change, message):
        folder = changed_artifact(given, name, change)
        return Case(name, run(folder), message)

    def truncate(file, size):
        return lambda folder: os.truncate(f"{folder}/{file}", size)

    yield damaged("manifest-cut", truncate("manifest.json", 1000),
                  r"damaged manifest .*manifest.json: line \d+, column \d+: this is not JSON")
    yield damaged("manifest-missing",
                  lambda folder: os.remove(f"{folder}/manifest.json"),
                  r"cannot read the artifact's manifest .*manifest.json")
    yield damaged("manifest-folder", manifest_folder,
                  r"cannot read the artifact's manifest .*: Is a directory")
    yield damaged("manifest-twice", manifest_twice,
                  r"damaged manifest .*manifest.json: line \d+, column \d+: 'format' appears twice")
    yield damaged("manifest-deep",
                  lambda folder: write(f"{folder}/manifest.json",
                                       '{"config":{"a":' + "[" * 300000),
                  r"manifest.json: line 1, column 78: nested deeper than 64 levels")
    yield damaged("manifest-range",
                  change_manifest(lambda m: m["ranges"][0].update(offset=2**40)),
                  r"damaged manifest .*ranges\[0\]: '.*' lies outside")
    yield damaged("manifest-other",
                  change_manifest(lambda m: m["programs"][0].update(flops=1)),
                  r"manifest.json is not the manifest inside .*step.so")
    yield damaged("manifest-format",
                  change_manifest(lambda m: m.update(format=1)),
                  r"format is not 5; the artifact is from another version")
    yield damaged("library-cut", truncate("step.so", 5000),
                  r"step.so is damaged or was changed .*compile the artifact "
                  r"again")
    yield damaged("library-stripped",
                  lambda folder: commands.run("strip", f"{folder}/step.so"),
                  r"step.so is damaged or was changed \(strip, patchelf\): "
                  r".*step.so.xxh3 is not its checksum; compile the artifact")
    yield damaged("library-checksum-missing",
                  lambda folder: os.remove(f"{folder}/step.so.xxh3"),
                  r"no checksum of its library, .*step.so.xxh3: an older "
                  r"fsdp-compile wrote it, .*; compile the artifact again")
    yield damaged("library-missing",
                  lambda folder: os.remove(f"{folder}/step.so"),
                  r"step.so is missing")
    yield damaged("library-other", replace_library("int other;"),
                  r"step.so is no compiled artifact")
    yield damaged("library-symbol",
                  replace_library('extern "C" void fsdp_gone();\nextern "C" '
                                  "void fsdp_get_artifact() { fsdp_gone(); }"),
                  r"step.so: undefined symbol: fsdp_gone")
    yield damaged("library-abi",
                  replace_library("static struct { unsigned abi; const char *m; "
                                  '} table = {99, ""};\nextern "C" void *'
                                  "fsdp_get_artifact() { return &table; }"),
                  r"step.so was compiled for ABI 99, this runtime has ABI \d+")
    yield Case("arena-huge", run(f"{given}/large", "--training.dataset", "bytes"),
               r"the arenas of this machine's ranks, 2 x \d{13} bytes, are "
               r"more than its memory of \d+ bytes")
    yield Case("artifact-missing", run("nowhere"),
               r"no artifact directory 'nowhere'")
    for library in ("libfsdp_runtime.so", "libdnnl.so.2"):
        yield Case(f"without-{library}",
                   [hide_library(given, library), f"{given}/artifact-1"],
                   r"error while loading shared libraries: gone.*: cannot "
                   r"open shared object file")


def run_cases(given, run):
    artifact = f"{given}/artifact"
    yield Case("text-none", ["fsdp-run", artifact, "-n", "2"],
               r"training.dataset_path is not set")

    def text(name, path, message):
        return Case(name, run(artifact, "--training.dataset_path", path), message)

    yield text("text-missing", "nowhere", r"cannot read the text 'nowhere': No "
               r"such file or directory")
    yield text("text-folder", given, r"given': Is a directory")
    os.mkfifo(f"{given}/pipe")
    yield text("text-pipe", f"{given}/pipe",
               r"given/pipe': it is a pipe or a device")
    yield text("text-short", write(f"{given}/short", "short"),
               r"given/short' is too short: it has 5 bytes")
    yield text("text-empty", write(f"{given}/nothing", ""),
               r"given/nothing' is too short: it has 0 bytes")
    yield Case("world", ["fsdp-run", artifact, "-n", "3"],
               r"wrong number of ranks: the artifact is compiled for 2 "
               r"\(dp_shard=2\), this job has 3")
    yield Case("launcher", run(artifact),
               r"OMPI_COMM_WORLD_RANK = 5 is not below OMPI_COMM_WORLD_SIZE = 2",
               environment={"OMPI_COMM_WORLD_RANK": "5",
                            "OMPI_COMM_WORLD_SIZE": "2"})
    def variable(name, value, what):
        return Case(f"variable-{name}", run(artifact),
                    rf"environment: {name} = '{value}' is no {what}",
                    environment={name: value})

    yield variable("FSDP_TIMEOUT", "abc", "number of seconds above 0")
    yield variable("FSDP_HEARTBEAT", "-1", "number of seconds")
    yield variable("FSDP_SHARED_MEMORY", "no", "choice: 0 or 1")
    yield variable("FSDP_NATIVE_BF16", "2", "choice: 0 or 1")
    alone = run(artifact)
    del alone[alone.index("-n"):alone.index("-n") + 2]
    yield Case("not-mpi", alone,
               r"reports 2 ranks \(RANK = 0, WORLD_SIZE = 2\), MPI 1: .* type "
               r"'mpirun -n 2 fsdp-run …', under Slurm 'srun --mpi=pmix -n 2 "
               r"fsdp-run …', or unset RANK and WORLD_SIZE and type "
               r"'fsdp-run … -n 2'",
               environment={"RANK": "0", "WORLD_SIZE": "2"})
    yield Case("small-files", ["bash", "-c", 'ulimit -f 64; exec "$@"', "-",
                               *run(artifact)],
               r"a file may have 64 KiB at most, but 2 ranks share memory of "
               r"128 KiB, which counts as one; raise the limit "
               r"\(ulimit -f unlimited\)")
    yield Case("messages", run(artifact),
               r"with FSDP_SHARED_MEMORY = 0 ranks on CPUs send messages, for "
               r"which MPI starts them: type 'mpirun -n 2 fsdp-run …' without -n",
               environment={"FSDP_SHARED_MEMORY": "0"})
    yield Case("stale", run(artifact, "--model.dim", "128"),
               r"stale artifact: model.dim is 64 in the artifact, the run wants "
               r"128 \(command line\)")
    yield Case("key-misspelt", run(artifact, "--trainin.steps", "2"),
               r"unknown key 'trainin.steps'; did you mean 'training.steps'\?")
    yield Case("run-option", run(artifact, "--fast"), r"--fast")
    yield Case("program", run(artifact, "--program", "fly"),
               r"the artifact has no program 'fly'")
    yield Case("dump-nowhere",
               run(artifact, "--dump", f"{given}/text/x.safetensors"),
               r"cannot write '.*given/text/x.safetensors': Not a directory")
    yield Case("folder-nowhere",
               run(artifact, "--job.dump_folder", f"{given}/text/x"),
               r"given/text/x': Not a directory")
    yield Case("program-text", run(artifact, "--program", "evaluate"),
               r"--program reads no text: leave --training.dataset_path out, "
               r"and give the tokens with --load")
    yield Case("description", run(artifact, "--job.description", b"a \xff"),
               r"command line: job.description: expected one line of UTF-8 "
               r"without control characters")
    yield Case("not-finite", run(artifact, "--optimizer.lr", "1e30"),
               r"step \d+: the .* is not finite; the run was stopped",
               kept=STEPS)


def metrics_cases(given, run):
    artifact = f"{given}/artifact"

    def named(name, value, message):
        return Case(f"metrics-{name}", run(artifact, "--metrics.jsonl", value,
                                           "--dump", "x.safetensors",
                                           "--job.dump_folder", "."),
                    f"command line: metrics.jsonl: {message}")

    for name, value in (("above", "../x"), ("absolute", f"{given}/text"),
                        ("below", "a/x"), ("folder", "..")):
        yield named(name, value, rf"expected the name of a file in the dump "
                    rf"folder, got '{value}'; job.dump_folder says where that is")
    for value in ("run.lock", "summary.json", "loss.svg", "sample.txt",
                  "x.rank1.safetensors"):
        yield named(value, value, rf"'{value}' is another file of this run; "
                    r"choose another name")
    yield named("control", "a\nb", r"expected one line of UTF-8")

    def there(name, make, message, ranks):
        os.mkdir(f"{given}/{name}")
        path = f"{given}/{name}/metrics.jsonl"
        make(path)
        command = run(artifact, "--job.dump_folder", f"{given}/{name}")
        if ranks == 1:
            command[1:4] = [f"{given}/artifact-1"]
        return Case(name, command, f"'{path}' {message}; choose another "
                    r"--metrics.jsonl, or an empty one for none")

    foreign = r"is not the metrics of a run: its first line does not begin with"
    for ranks in (1, 2):
        yield there(f"metrics-pipe-{ranks}", os.mkfifo,
                    "is no regular file, which keeps the metrics", ranks)
        yield there(f"metrics-foreign-{ranks}",
                    lambda path: write(path, "my notes\n"),
                    foreign + ' {"run":', ranks)


def load_cases(given, run):
    def load(name, content, message):
        path = write(f"{given}/{name}.safetensors", content)
        return Case(name, run(f"{given}/artifact", "--load", path), message)

    def entry(begin, end, shape=(4,)):
        return {"dtype": "F32", "shape": shape, "data_offsets": [begin, end]}

    yield load("load-header", encoded({}, length=2**40),
               r"load-header.safetensors': its header is longer than the file")
    yield load("load-overlap",
               encoded({"a": entry(0, 16), "b": entry(8, 24)}, bytes(24)),
               r"load-overlap.safetensors': there is a hole or an overlap "
               r"before 'b'")
    yield load("load-fraction", encoded({"a": entry(0.5, 16)}, bytes(16)),
               r"the data_offsets of 'a' is no list of whole numbers")
    three = {"a": {**entry(0, 16), "data_offsets": [0, 16, 16]}}
    yield load("load-three", encoded(three, bytes(16)),
               r"the data_offsets of 'a' must be 2 numbers, not 3")
    yield load("load-twice",
               encoded(b'{"a": {}, "a": {}}'), r"'a' appears twice")
    yield load("load-deep", encoded(b"[" * 300000),
               r"nested deeper than 64 levels")
    yield Case("load-folder", run(f"{given}/artifact", "--load", given),
               r"cannot read the tensors in '.*given': Is a directory")
    yield load("load-range", encoded({"nobody": entry(0, 16)}, bytes(16)),
               r"load-range.safetensors: the artifact has no range 'nobody'")
    yield load("load-shape",
               encoded({"norm.weight": entry(0, 16)}, bytes(16)),
               r"'norm.weight' has another type or shape than in the artifact")
    part = {"__metadata__": {"rank": "0", "ranks": "2"}, "norm.weight": entry(0, 128, (32,))}
    yield load("load-part", encoded(part, bytes(128)),
               r"load-part.safetensors: it has the parts of rank 0 of 2, and this is rank 1 of "
               r"2; name the file as --dump was given it, of which each rank takes its own")
    part["__metadata__"]["ranks"] = "4"
    yield load("load-part-of-more", encoded(part, bytes(128)),
               r"it has the parts of rank 0 of 4, and this is rank \d of 2; a dump of parts "
               r"goes with as many ranks")
    yield Case("load-missing", run(f"{given}/artifact", "--load", "nowhere"),
               r"there is no file 'nowhere' and no 'nowhere.rank\d'")
    batch = {"dtype": "I32", "shape": [2, 64], "data_offsets": [0, 512]}
    values = struct.pack("<128i", 256, *[0] * 127)
    both = {"tokens": batch, "targets": {**batch, "data_offsets": [512, 1024]}}
    for name, other in (("tokens", "targets"), ("targets", "tokens")):
        yield load(f"load-only-{name}",
                   encoded({name: batch}, bytes(512)),
                   rf"load-only-{name}.safetensors: it has '{name}' but no "
                   rf"'{other}'; a batch to train on needs both")
    yield load("token-range", encoded(both, values + bytes(512)),
               r"program 'train': a token is outside the vocabulary")


STEPS = ("outputs", "outputs/metrics.jsonl")


def remove_metrics(process, folder):
    """After two steps."""
    wait_for_steps(process)
    [path] = glob.glob(f"{folder}/**/metrics.jsonl", recursive=True)
    os.remove(path)


def death_cases(given, run):
    long = run(f"{given}/artifact", "--training.steps", "100000",
               "--metrics.log_freq", "1")
    yield Case("rank-killed", long,
               r"rank 1 was ended by signal 9 \(Killed\); the whole job was "
               r"stopped", disturb=signal_rank(1, signal.SIGKILL), kept=STEPS)
    yield Case("first-rank-killed", long,
               r"rank 0 was ended by signal 9 \(Killed\); the whole job was "
               r"stopped", disturb=signal_rank(0, signal.SIGKILL), kept=STEPS)
    # What 500 steps print is more than a pipe holds, so that it waits for its reader.
    yield Case("metrics-removed", run(f"{given}/artifact", "--training.steps", "500",
                                      "--metrics.log_freq", "1"),
               r"rank 0: '.*metrics.jsonl' was removed while the run wrote it; its lines "
               r"are lost", disturb=remove_metrics,
               kept=("outputs", "outputs/loss.svg", "outputs/summary.json"))
    yield Case("rank-hangs", long,
               r'rank \d: \w+ ".*" \(number \d+ of .*\) on stream \w+ has not ended within 4 s',
               environment={"FSDP_TIMEOUT": "4"},
               disturb=signal_rank(1, signal.SIGSTOP), kept=STEPS)


def all_run_cases(given, run):
    for cases in (artifact_cases, run_cases, metrics_cases, load_cases, death_cases):
        yield from cases(given, run)
