"""Compiles what the stages run, and lets a CPU run it.

A folder afterwards:

  bin, lib         programs and the CUDA runtime
  artifacts        for GPUs
  expected         what a CPU makes of the small ones
  text             to train on
  prepared.json    the names of all that, with their ranks"""
import json
import os
import shutil
import subprocess
import sys

import operations
import traffic

# Sizes that make ranges of the arena end anywhere.
TINY = ["--model.n_layers", 2, "--model.dim", 64, "--model.n_heads", 4, "--model.n_kv_heads", 2,
        "--model.ffn_dim", 96, "--model.vocab_size", 256, "--training.seq_len", 36,
        "--training.local_batch_size", 1]
NARROW = ["--training.mixed_precision_param", "bfloat16"]


def tiny(small):
    """Names, ranks and settings of the small models that train."""
    yield "tiny", 1, [*TINY, *NARROW]
    if not small:
        yield "tiny-f32", 1, TINY
        yield "tiny-accumulate", 1, [*TINY, *NARROW, "--training.global_batch_size", 3]
    for n in ranks_of(small):
        for mode in ("fully_shard", "replicate"):
            yield f"tiny-{mode}-{n}", n, [*TINY, *NARROW, "--compile.mode", mode]


def ranks_of(small):
    return [2] if small else [2, 4]


def timed():
    """Names and shapes of the models that are timed, on one GPU. The last has
    the sizes of GPT-2 in Llama's form."""
    return {
        "1B, 1 x 512": dict(flavor="1B", seq_len=512, batch=1),
        "1B, 8 x 2048": dict(flavor="1B", seq_len=2048, batch=8),
        "8B of 4 layers, 1 x 8192": dict(flavor="8B", n_layers=4, seq_len=8192, batch=1),
        "124M, 8 x 1024": dict(flavor="debugmodel", dim=768, n_layers=12, n_heads=12,
                               n_kv_heads=12, ffn_dim=2048, vocab_size=50304, seq_len=1024,
                               batch=8),
    }


def settings_of(shape):
    words = []
    for key, value in shape.items():
        name = {"seq_len": "training.seq_len", "batch": "training.local_batch_size"}.get(
            key, f"model.{key}")
        words += [f"--{name}", value]
    return [*words, *NARROW]


def prepare(root, args):
    folder = os.path.abspath(args.folder)
    os.makedirs(folder, exist_ok=True)
    make = _Preparation(root, os.path.abspath(args.build), folder, args)
    make.programs()
    with open(os.path.join(folder, "text"), "w") as text:
        text.write("".join(f"{i}\n" for i in range(1, 4001)))
    prepared = {
        "ranks": ranks_of(args.small),
        "tiny": {name: {"ranks": n, "losses": make.trained(name, n, settings)}
                 for name, n, settings in tiny(args.small)},
        "fast": make.pairs(args.small),
        "operations": make.operations(),
        "timed": make.timed_tiny() if args.small else make.timed(),
    }
    with open(os.path.join(folder, "prepared.json"), "w") as file:
        json.dump(prepared, file, indent=1)


class _Preparation:
    STEPS = 8

    def __init__(self, root, build, folder, args):
        self.root, self.build, self.folder, self.gpu = root, build, folder, args.gpu
        self.needs_host_builds = bool(args.device)

    def programs(self):
        """Programs look for libraries in ../lib."""
        for kind, names in {"bin": ["fsdp-run", "fsdp-rank-cuda", "fsdp-gpu-check"],
                            "lib": ["libfsdp_runtime_cuda.so"]}.items():
            os.makedirs(os.path.join(self.folder, kind), exist_ok=True)
            for name in names:
                shutil.copy2(os.path.join(self.build, kind, name),
                             os.path.join(self.folder, kind, name))

    def _run(self, *command):
        done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, errors="replace")
        if done.returncode != 0:
            sys.exit(f"gpu-report.sh: {' '.join(map(str, command))}\n{done.stdout}")
        return done.stdout

    def _compile(self, name, settings, target, place):
        print(f"== {name} for {target}", flush=True)
        gpu = ["--gpu", self.gpu] if target == "cuda" else []
        self._run(os.path.join(self.build, "bin", "fsdp-compile"), *settings, *gpu,
                  f"--target={target}", "-o", place)

    def artifact(self, name, ranks, settings):
        place = os.path.join(self.folder, "artifacts", name)
        settings = [*settings, "--compile.threads", 1]
        settings += ["--ranks", ranks] if ranks else []
        self._compile(name, settings, "cuda", place)
        if self.needs_host_builds:
            self._run(os.path.join(self.build, "bin", "fsdp-compile"), *settings, "--target=cuda",
                      "--emit=cuda", "-o", place + ".cu")
            self._run("sh", os.path.join(self.root, "test/fakecuda/host-builds/make-step-host-build.sh"),
                      place + ".cu", os.path.join(place, "host-builds.so"), self.root)

    def _on_cpu(self, name, settings):
        place = os.path.join(self.folder, "expected", name)
        self._compile(name, [*settings, "--compile.threads", 1], "cpu", place)
        return place

    def trained(self, name, ranks, settings):
        """The losses of the CPU's run."""
        self.artifact(name, ranks, settings)
        place = self._on_cpu(name, [*settings, "--ranks", ranks])
        runs = os.path.join(place, "run")
        shutil.rmtree(runs, ignore_errors=True)
        self._run(os.path.join(self.build, "bin", "fsdp-run"), place, "-n", ranks,
                  "--training.steps", self.STEPS, "--training.dataset", "bytes",
                  "--training.dataset_path", os.path.join(self.folder, "text"),
                  "--lr_scheduler.warmup_steps", 2, "--validation.enable", "false",
                  "--sample.length", 0, "--metrics.log_freq", 1, "--metrics.peak_tflops", 1,
                  "--job.dump_folder", runs)
        with open(os.path.join(runs, "metrics.jsonl")) as lines:
            records = [json.loads(line) for line in lines]
        return [record["loss"] for record in records if "loss_hex" in record]

    def pairs(self, small):
        """Artifacts of several ranks with exact sums, and as many with NCCL's."""
        pairs = {f"tiny, {n} ranks": {"ranks": n, "exact": f"tiny-fully_shard-{n}",
                                      "fast": self.fast(f"tiny-fast-{n}", n, [*TINY, *NARROW])}
                 for n in ranks_of(small)}
        if not small:
            name = "124M, 8 x 1024"
            settings = settings_of(timed()[name])
            self.artifact("timed-exact", 2, settings)
            pairs[f"{name}, 2 ranks"] = {"ranks": 2, "exact": "timed-exact",
                                         "fast": self.fast("timed-fast", 2, settings)}
        return pairs

    def fast(self, name, ranks, settings):
        self.artifact(name, ranks, [*settings, "--compile.reduce", "fast"])
        return name

    def timed(self):
        models = {}
        for name, shape in timed().items():
            artifact, settings = f"timed-{len(models)}", settings_of(shape)
            self.artifact(artifact, 1, settings)
            models[name] = {"artifact": artifact, "shape": shape,
                            "traffic": self.traffic(artifact, settings)}
        return models

    def timed_tiny(self):
        return {"tiny": {"artifact": "tiny",
                         "traffic": self.traffic("tiny", [*TINY, *NARROW])}}

    def traffic(self, artifact, settings):
        place = os.path.join(self.folder, "artifacts", artifact + ".mlir")
        self._run(os.path.join(self.build, "bin", "fsdp-compile"), *settings, "--ranks", 1,
                  "--compile.threads", 1, "--target=cuda", "--emit=mlir", "-o", place)
        found = traffic.of_step(place, "train")
        os.remove(place)
        return found

    def operations(self):
        """Programs of single operations, and what the CPU prints of them."""
        text = os.path.join(self.folder, "operations.mlir")
        with open(text, "w") as file:
            file.write(operations.text())
        settings = [text, "--programs-only", "--compile.attention", "plain"]
        self.artifact("operations", None, settings)
        place = self._on_cpu("operations", settings)
        with open(os.path.join(place, "manifest.json")) as file:
            manifest = json.load(file)
        inputs = os.path.join(self.folder, "operations.safetensors")
        operations.write_inputs(manifest, inputs)
        return {program["name"]:
                self._run(os.path.join(self.build, "bin", "fsdp-run"), place, "-n", 1,
                          "--program", program["name"], "--load", inputs)
                for program in manifest["programs"]}
