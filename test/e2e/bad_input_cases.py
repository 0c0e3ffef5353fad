"""The cases of bad_input.py: what is wrong, and what is said about it. Those that
a run meets are in bad_run_cases.py."""
import json
import os
import shutil

from bad_case import Case
from bad_run_cases import all_run_cases
from support import commands
from support.files import write


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
             r'expected one of "llama", .* \(others are not supported\) at '
             r'config.model_type, got "bert"'),
            ("size", '{"model_type": "llama", "hidden_size": "many"}',
             r"expected integer at config.hidden_size"),
            ("biases", '{"model_type": "llama", "attention_bias": true}',
             r"expected false \(biases are not supported\) at "
             r"config.attention_bias, got true"),
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
    plan = json.loads(commands.run(*good, "--emit=plan"))
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
               r"the plan has version 1, .* 'python3 tools/convert-plan.py OLD.json > NEW.json'")
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
               r"cannot create the directory '.*given/text': Not a directory")
    yield Case("output-nowhere", good + ["-o", f"{given}/text/x"],
               r"given/text/x.*Not a directory")
    yield Case("output-none", good, r"name the artifact with -o DIR")
    yield Case("option-unknown", good + ["--fuse", "-o", "x"],
               r"'--fuse'", lines=2)


def all_cases(config, text, work):
    given = f"{work}/given"
    os.makedirs(given)
    shutil.copy(text, f"{given}/text")
    commands.run("fsdp-compile", "--config", config, "--ranks", "2", "-o",
                 f"{given}/artifact")
    commands.run("fsdp-compile", "--config", config, "--ranks", "1", "-o",
                 f"{given}/artifact-1")
    # 5 TiB for every rank: logits of all the tokens that i32 can name.
    commands.run("fsdp-compile", "--config", config, "--ranks", "2",
                 "--model.vocab_size", "2147483647", "-o", f"{given}/large")

    def run(artifact, *options):
        return ["fsdp-run", artifact, "-n", "2", "--training.dataset_path",
                f"{given}/text", "--training.steps", "4",
                "--lr_scheduler.warmup_steps", "2", *options]

    return [*ir_cases(given), *trace_cases(given), *config_cases(given, config),
            *compile_cases(given, config), *all_run_cases(given, run)]
