"""The cases of bad_input.py: what is wrong, and what is said about it."""
import dataclasses
import json
import os
import shutil
import signal
import struct
import typing

import artifacts


@dataclasses.dataclass
class Case:
    name: str
    command: list
    message: str  # regular expression that stderr matches
    lines: int = 1  # of stderr, at most; more where notes give the place
    environment: dict = dataclasses.field(default_factory=dict)
    disturb: typing.Callable = None  # does harm to the running process
    has_steps: bool = False  # which a failed run must keep


#===------------------------------------------------------------------------===#
# Input that is made
#===------------------------------------------------------------------------===#

# One malformed text per dialect, and one that is no text of MLIR at all.
BAD_IR = {
    "syntax": ("func.func @f( {\n}\n",
               r"syntax.mlir:1:14: error: expected non-function type"),
    "nn": ("func.func @f(%x: tensor<2x3xf32>, %w: tensor<4x5xf32>) {\n"
           "  %y = nn.linear %x, %w : tensor<2x3xf32>, tensor<4x5xf32> -> "
           "tensor<2x4xf32>\n  return\n}\n",
           r"nn.mlir:2:8: error: 'nn.linear' op "),
    "fsdp": ('fsdp.mesh @mesh ["dp" = 0]\n',
             r'fsdp.mlir:1:\d+: error: .*mesh axis "dp" must have size at '
             r"least 1, got 0"),
    "exec": ("exec.program @p {\n  %w = exec.get @w : memref<4xf32>\n}\n",
             r"exec.mlir:2:8: error: 'exec.get' op refers to @w, but no exec.range is named so"),
}


def write(path, content):
    with open(path, "wb") as file:
        file.write(content if isinstance(content, bytes) else content.encode())
    return path


def safetensors(header, data=b"", length=None):
    text = json.dumps(header).encode() if isinstance(header, dict) else header
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def changed_artifact(given, name, change):
    """A copy of the good artifact after `change(folder)`."""
    folder = f"{given}/{name}"
    shutil.copytree(f"{given}/artifact", folder)
    change(folder)
    return folder


def change_manifest(change):
    def apply(folder):
        with open(f"{folder}/manifest.json") as file:
            manifest = json.load(file)
        change(manifest)
        write(f"{folder}/manifest.json", json.dumps(manifest))
    return apply


def replace_library(source):
    """Compiles `source` in place of the artifact's library."""
    def apply(folder):
        write(f"{folder}/step.cpp", source)
        artifacts.run("g++", "-shared", "-fPIC", f"{folder}/step.cpp", "-o",
                      f"{folder}/step.so")
        artifacts.write_checksum(folder)
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


def signal_rank(rank, number):
    """Sends a signal to one rank in the middle of its training."""
    def process_of(folder):
        wanted = {f"RANK={rank}".encode(),
                  f"TMPDIR={folder}/tmp".encode()}
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if wanted <= set(file.read().split(b"\0")):
                        return int(name)
            except OSError:
                pass  # It has ended, or is not ours.
        raise ProcessLookupError(f"there is no rank {rank}")

    def apply(process, folder):
        steps = 0
        while steps < 2:
            line = process.stdout.readline()
            if not line:
                return  # The job has ended, which the caller will not like.
            steps += line.startswith("step:")
        os.kill(process_of(folder), number)
    return apply


#===------------------------------------------------------------------------===#
# Cases
#===------------------------------------------------------------------------===#

def ir_cases(given):
    for name, (text, message) in BAD_IR.items():
        path = write(f"{given}/{name}.mlir", text)
        # The source line and a caret follow the message.
        yield Case(f"opt-{name}", ["fsdp-opt", path], message, lines=6)
        yield Case(f"compile-{name}", ["fsdp-compile", path, "-o", "x"],
                   message, lines=6)
    yield Case("opt-pass", ["fsdp-opt", "--fsdp-shart", path],
               r"unknown option '--fsdp-shart'; did you mean '--fsdp-shard'\?")
    yield Case("opt-missing", ["fsdp-opt", "nowhere.mlir"],
               r"nowhere.mlir.*No such file or directory")
    yield Case("compile-missing", ["fsdp-compile", "nowhere.mlir", "-o", "x"],
               r"nowhere.mlir.*No such file or directory")
    deep = write(f"{given}/deep.mlir", "module {\n" * 300000)
    for tool, more in (("opt", []), ("compile", ["-o", "x"])):
        yield Case(f"{tool}-deep", [f"fsdp-{tool}", deep, *more],
                   r"deep.mlir:257:8: more than 256 brackets or signs are "
                   r"inside one another")
    huge = write(f"{given}/huge.mlir",
                 "exec.range @w : memref<12x9223372036854775807xf32> role "
                 "parameter\nexec.program @p {\n}\n")
    yield Case("compile-huge", ["fsdp-compile", huge, "-o", "x"],
               r"huge.mlir:1:1: error: 'exec.range' op @w .* have at most 2\^56 "
               r"bytes, but is 'memref<12x9223372036854775807xf32>'", lines=6)
    names = write(f"{given}/names.mlir",
                  'module {\n  func.func private @"x\\FF"()\n}\n')
    yield Case("compile-names", ["fsdp-compile", names, "-o", "x"],
               r"names.mlir:2:3: error: 'sym_name' is not UTF-8", lines=3)
    empty = write(f"{given}/empty.mlir", "module {}\n")
    yield Case("compile-empty", ["fsdp-compile", empty, "-o", "x"],
               r"empty.mlir:1:1: error: the module has no program @forward", lines=3)


def trace_cases(given):
    yield Case("model-unknown", ["fsdp-trace", "llama3_80b"],
               r"unknown model 'llama3_80b'.*llama3_8b")
    yield Case("model-field", ["fsdp-trace", "llama3_8b", "--set=n_head=4"],
               r"n_head.*n_heads")
    yield Case("model-heads",
               ["fsdp-trace", "llama3_debug", "--set=n_heads=7", "-o", "x"],
               r"dim = 256 is not divisible by n_heads = 7")
    yield Case("trace-batch", ["fsdp-trace", "llama3_debug", "--batch=0"],
               r"--batch must be at least 1")
    for name, text, message in [
            ("syntax", '{"model_type": "llama", ', "line 1, column 24: this is not JSON: unexpected end of input"),
            ("model", '{"model_type": "bert"}',
             r'expected "llama" \(others are not supported\) at '
             r'config.model_type, got "bert"'),
            ("size", '{"model_type": "llama", "hidden_size": "many"}',
             r"expected integer at config.hidden_size"),
            ("dropout", '{"model_type": "llama", "attention_dropout": 0.1}',
             r"expected 0 \(dropout is not supported\) at "
             r"config.attention_dropout, got 0.1"),
            ("twice", '{"model_type": "llama",\n"vocab_size": 8, "vocab_size": 9}',
             r"line 2, column 29: 'vocab_size' appears twice"),
            ("infinite", '{"model_type": "llama", "rope_theta": 1e999}',
             r"line 1, column 44: rope_theta: 1e999 is not a finite number"),
            ("deep", "[" * 300000, r"line 1, column 65: nested deeper than 64 levels"),
            ("huge", '{"model_type": "llama", "hidden_size": 64, '
             '"num_hidden_layers": 9223372036854775807, '
             '"num_attention_heads": 4, "intermediate_size": 64, '
             '"vocab_size": 256}', r"expected 1 to 10000 at config.num_hidden_layers, got 9223")]:
        path = write(f"{given}/{name}.json", text)
        yield Case(f"config-json-{name}", ["fsdp-trace", path],
                   rf"{name}\.json: .*{message}")


def config_cases(given, config):
    def compile(name, text, message):
        path = write(f"{given}/{name}.toml", text)
        return Case(name, ["fsdp-compile", "--config", path, "-o", "x"], message)

    yield compile("key-unknown", "[training]\nsteps = 2\nseq_length = 8\n",
                  r"key-unknown.toml:3: unknown key 'training.seq_length'; did "
                  r"you mean 'training.seq_len'\?")
    yield compile("section-unknown", "[trainin]\nsteps = 2\n",
                  r"section-unknown.toml:1: unknown section \[trainin\]; did you "
                  r"mean 'training'\?")
    yield compile("key-type", '[training]\nseq_len = "8"\n',
                  r"key-type.toml:2: training.seq_len: expected an integer, got "
                  r"'8'")
    yield compile("key-twice", "[training]\nsteps = 1\nsteps = 2\n",
                  r"key-twice.toml:3: .*steps")
    yield compile("toml-syntax", "[training\n", r"toml-syntax.toml:1: ")
    yield compile("batch-zero", "[training]\nlocal_batch_size = 0\n",
                  r"batch-zero.toml:2: training.local_batch_size: expected at "
                  r"least 1, got 0")
    yield compile("seq-negative", "[training]\nseq_len = -4\n",
                  r"seq-negative.toml:2: training.seq_len: expected at least 1")
    yield compile("choice", '[compile]\nmode = "shard"\n',
                  r"choice.toml:2: compile.mode: expected one of auto, "
                  r"fully_shard, hybrid_shard, replicate, got 'shard'")
    yield compile("not-neutral", '[model]\nconverters = ["float8"]\n',
                  r'not-neutral.toml:2: model.converters = \["float8"\] is not '
                  r"supported \(there is no Float8 and no MX\)")
    many = write(f"{given}/many.toml", "[training]\nseq_len = 0\nstepz = 3\n"
                 "[model]\ndim = 64\nn_heads = 5\n")
    yield Case("many", ["fsdp-compile", "--config", many, "--ranks", "2",
                        "--optimizer.lr", "fast",
                        "--parallelism.data_parallel_shard_degree", "3", "-o", "x"],
               r"error: 5 settings are wrong:\n  .*many.toml:2: training.seq_len: "
               r".*\n  .*many.toml:3: unknown key 'training.stepz'.*\n  command "
               r"line: optimizer.lr: .*\n  impossible mesh: .*\n  .*dim = 64 is "
               r"not divisible by n_heads = 5\n", lines=6)
    good = ["fsdp-compile", "--config", config, "--ranks", "2"]
    yield Case("heads", good + ["--model.n_heads", "5", "-o", "x"],
               r"dim = 64 is not divisible by n_heads = 5")
    yield Case("flavor", good + ["--model.flavor", "9B", "-o", "x"], r"unknown model 'llama3_9b'")
    yield Case("mesh-degrees",
               good + ["--parallelism.data_parallel_shard_degree", "4", "-o",
                       "x"],
               r"impossible mesh: .*shard_degree = 4 is not the number of "
               r"ranks, 2")
    yield Case("mesh-divides",
               ["fsdp-compile", "--config", config, "--ranks", "3",
                "--parallelism.data_parallel_replicate_degree", "2", "-o", "x"],
               r"impossible mesh: .*replicate_degree = 2 does not divide 3")
    for name, *options, message in [
            ("batch-huge", "--training.local_batch_size", "1073741824",
             r"training.local_batch_size: expected at most 16777216, got "
             r"1073741824"),
            ("batch-global-zero", "--training.global_batch_size", "0",
             r"training.global_batch_size = 0 is no multiple of \d+, which "
             r"training.local_batch_size = \d+ on 2 data-parallel ranks takes"),
            ("batch-global-odd", "--training.global_batch_size", "7",
             r"training.global_batch_size = 7 is no multiple of"),
            ("batch-global-huge", "--training.global_batch_size",
             "9007199254740992", r"training.global_batch_size = "
             r"9007199254740992 is more than 2\^20 times"),
            ("batch-global-text", "--training.global_batch_size", "many",
             r"training.global_batch_size: expected an integer, got 'many'"),
            ("layers-huge", "--model.n_layers", "1000000000",
             r"model.n_layers: expected at most 10000, got 1000000000"),
            ("vocabulary-huge", "--model.vocab_size", "9007199254740991",
             r"model.vocab_size: expected at most 2147483647"),
            ("dim-huge", "--model.dim", "4503599627370496",
             r"model.dim: expected at most 16777216, got 4503599627370496"),
            ("sequence-huge", "--training.seq_len", "4294967296",
             r"training.seq_len: expected at most 16777216"),
            ("degree-huge", "--parallelism.data_parallel_shard_degree",
             "4294967296", r"shard_degree: expected at most 1048576"),
            ("ranks-huge", "--ranks", "4294967296",
             r"--ranks must be at most 1048576"),
            ("tensor-huge", "--model.vocab_size", "2147483647", "--model.dim",
             "16777216", r"tok_embeddings.weight: 2147483647 x 16777216 x f32 "
             r"are more than 2\^56 bytes"),
            ("flops-huge", "--training.local_batch_size", "8388608",
             "--training.seq_len", "131072",
             r"needs more than 2\^62 floating point operations"),
            ("product-huge", "--training.local_batch_size", "32768",
             "--training.seq_len", "131072",
             r"layers.0.attention.wq: is too large for the library of this "
             r"target")]:
        ranks = [] if name == "ranks-huge" else ["--ranks", "2"]
        yield Case(name, ["fsdp-compile", "--config", config, *ranks, *options,
                          "-o", "x"], message)
    yield Case("ranks-zero", good[:-1] + ["0", "-o", "x"],
               r"--ranks must be at least 1")
    yield Case("config-folder", good[:1] + ["--config", given, "-o", "x"],
               r"cannot read the run description '.*given': Is a directory")
    yield Case("name-bytes", good + ["--compile.cpu", b"x\xff", "-o", "x"],
               r"compile.cpu is not UTF-8")
    yield Case("config-missing", ["fsdp-compile", "--config", "no.toml", "-o", "x"],
               r"no.toml")


def compile_cases(given, config):
    good = ["fsdp-compile", "--config", config, "--ranks", "2"]
    plan = json.loads(artifacts.run(*good, "--emit=plan"))
    plan["rules"][0]["match"] = "fwd nobody all_gather"
    yield Case("plan-parameter",
               good + ["-o", "x", "--plan",
                       write(f"{given}/plan1.json", json.dumps(plan))],
               r"the plan '.*plan1.json' does not fit the model: "
               r"rules\[0\]: match: .* 'fwd nobody all_gather'")
    yield Case("plan-json",
               good + ["-o", "x", "--plan",
                       write(f"{given}/plan2.json", '{"version": 2, ')],
               r"plan2.json': line 1, column 15: this is not JSON: unexpected end of input")
    yield Case("plan-type",
               good + ["-o", "x", "--plan",
                       write(f"{given}/plan3.json",
                             '{"version": 2, "rules": [{"match": "a", "bucket": 3}]}')],
               r"plan3.json': rules\[0\]: bucket: expected a string")
    def plan(name, text, message):
        path = write(f"{given}/{name}.json", text)
        return Case(name, good + ["-o", "x", "--plan", path],
                    rf"{name}.json': {message}")

    rule = '{"match": "fwd * all_gather"'
    yield plan("plan-key", f'{{"version": 2, "rules": [{rule}, "prefech": 2}}]}}',
               r"rules\[0\]: unknown key 'prefech'; did you mean 'prefetch'\?")
    yield plan("plan-extra", '{"version": 2, "rules": [], "extra": 1}',
               r"unknown key 'extra'")
    yield plan("plan-twice",
               f'{{"version": 2, "rules": [{rule}, "merge": true, "merge": false}}]}}',
               r"line 1, column 77: rules\[0\]: 'merge' appears twice")
    yield plan("plan-version-1", '{"version": 1, "units": []}',
               r"it is of version 1, .* 'python3 tools/convert-plan.py OLD.json > NEW.json'")
    yield plan("plan-deep", "[" * 300000,
               r"line 1, column 65: nested deeper than 64 levels")
    yield Case("budget", good + ["--memory-budget", "1000000", "-o", "x"],
               r"^fsdp-compile: error: .*program @train needs .* bytes\), but the memory "
               r"budget is 976.6 KiB \(1000000 bytes\)\n"
               r"  .* at the peak: layers.*: [a-z]+, [0-9]+ × .* KiB \(activation\)", lines=14)
    yield Case("cxx-missing", good + ["--cxx", "nosuch", "-o", "x"],
               r"cannot find the compiler 'nosuch'")
    # What the compiler says follows.
    fails = write(f"{given}/failing-compiler",
                  "#!/bin/sh\ncase $1 in -dump*) echo 1;; *) echo no >&2; "
                  "exit 3;; esac\n")
    os.chmod(fails, 0o755)
    yield Case("cxx-fails", good + ["--cxx", fails, "-o", "x"],
               r"the compiler failed:\n.*\nno", lines=4)
    yield Case("output-file", good + ["-o", f"{given}/text"],
               r"cannot make the directory '.*given/text': Not a directory")
    yield Case("output-nowhere", good + ["-o", f"{given}/text/x"],
               r"given/text/x.*Not a directory")
    yield Case("output-none", good, r"Name the artifact with -o DIR")
    yield Case("option-unknown", good + ["--fuse", "-o", "x"],
               r"'--fuse'", lines=2)


def manifest_folder(folder):
    os.remove(f"{folder}/manifest.json")
    os.mkdir(f"{folder}/manifest.json")


def manifest_twice(folder):
    with open(f"{folder}/manifest.json") as file:
        text = file.read()
    write(f"{folder}/manifest.json", text.replace("{", '{"format": 1,', 1))


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
                  lambda folder: artifacts.run("strip", f"{folder}/step.so"),
                  r"step.so is damaged or was changed \(strip, patchelf\): "
                  r".*step.so.xxh3 is not its checksum; compile the artifact")
    yield damaged("library-checksum-missing",
                  lambda folder: os.remove(f"{folder}/step.so.xxh3"),
                  r"no checksum of its library, .*step.so.xxh3: an older "
                  r"fsdp-compile has made it, .*; compile the artifact again")
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
               r"of 2 ranks \(RANK = 0, WORLD_SIZE = 2\), MPI of 1: .* type "
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
               has_steps=True)


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

    yield load("load-header", safetensors({}, length=2**40),
               r"load-header.safetensors': its header is longer than the file")
    yield load("load-overlap",
               safetensors({"a": entry(0, 16), "b": entry(8, 24)}, bytes(24)),
               r"load-overlap.safetensors': there is a hole or an overlap "
               r"before 'b'")
    yield load("load-fraction", safetensors({"a": entry(0.5, 16)}, bytes(16)),
               r"the data_offsets of 'a' is no list of whole numbers")
    three = {"a": {**entry(0, 16), "data_offsets": [0, 16, 16]}}
    yield load("load-three", safetensors(three, bytes(16)),
               r"the data_offsets of 'a' must be 2 numbers, not 3")
    yield load("load-twice",
               safetensors(b'{"a": {}, "a": {}}'), r"'a' appears twice")
    yield load("load-deep", safetensors(b"[" * 300000),
               r"nested deeper than 64 levels")
    yield Case("load-folder", run(f"{given}/artifact", "--load", given),
               r"cannot read the tensors in '.*given': Is a directory")
    yield load("load-range", safetensors({"nobody": entry(0, 16)}, bytes(16)),
               r"load-range.safetensors: the artifact has no range 'nobody'")
    yield load("load-shape",
               safetensors({"norm.weight": entry(0, 16)}, bytes(16)),
               r"'norm.weight' has another type or shape than in the artifact")
    yield Case("load-missing", run(f"{given}/artifact", "--load", "nowhere"),
               r"there is no file 'nowhere' and no 'nowhere.rank\d'")
    batch = {"dtype": "I32", "shape": [2, 64], "data_offsets": [0, 512]}
    values = struct.pack("<128i", 256, *[0] * 127)
    both = {"tokens": batch, "targets": {**batch, "data_offsets": [512, 1024]}}
    for name, other in (("tokens", "targets"), ("targets", "tokens")):
        yield load(f"load-only-{name}",
                   safetensors({name: batch}, bytes(512)),
                   rf"load-only-{name}.safetensors: it has '{name}' but no "
                   rf"'{other}'; a batch to train on needs both")
    yield load("token-range", safetensors(both, values + bytes(512)),
               r"program 'train': a token is outside the vocabulary")


def death_cases(given, run):
    long = run(f"{given}/artifact", "--training.steps", "100000",
               "--metrics.log_freq", "1")
    yield Case("rank-killed", long,
               r"rank 1 was ended by signal 9 \(Killed\); the whole job was "
               r"stopped", disturb=signal_rank(1, signal.SIGKILL), has_steps=True)
    yield Case("first-rank-killed", long,
               r"rank 0 was ended by signal 9 \(Killed\); the whole job was "
               r"stopped", disturb=signal_rank(0, signal.SIGKILL), has_steps=True)
    yield Case("rank-hangs", long,
               r'rank \d: \w+ ".*" \(number \d+ of .*\) on stream \w+ has not ended within 4 s',
               environment={"FSDP_TIMEOUT": "4"},
               disturb=signal_rank(1, signal.SIGSTOP), has_steps=True)


def all_cases(config, text, work):
    given = f"{work}/given"
    os.makedirs(given)
    shutil.copy(text, f"{given}/text")
    artifacts.run("fsdp-compile", "--config", config, "--ranks", "2", "-o",
                  f"{given}/artifact")
    artifacts.run("fsdp-compile", "--config", config, "--ranks", "1", "-o",
                  f"{given}/artifact-1")
    # 5 TiB for every rank: logits of all the tokens that i32 can name.
    artifacts.run("fsdp-compile", "--config", config, "--ranks", "2",
                  "--model.vocab_size", "2147483647", "-o", f"{given}/large")

    def run(artifact, *options):
        return ["fsdp-run", artifact, "-n", "2", "--training.dataset_path",
                f"{given}/text", "--training.steps", "4",
                "--lr_scheduler.warmup_steps", "2", *options]

    return [*ir_cases(given), *trace_cases(given), *config_cases(given, config),
            *compile_cases(given, config), *artifact_cases(given, run),
            *run_cases(given, run), *metrics_cases(given, run), *load_cases(given, run),
            *death_cases(given, run)]
