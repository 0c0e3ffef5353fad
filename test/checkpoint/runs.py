"""Helpers of the tests of runs that save and go on: compile small artifacts,
run them, look at what they leave."""
import contextlib
import json
import os
import signal
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
import artifacts  # noqa: E402
from artifacts import expect  # noqa: E402,F401

CONFIG = os.path.join(HERE, "..", "e2e", "Inputs", "tiny.toml")
# So small that a step takes a millisecond, and with a rate that does not depend
# on how many steps there are.
SMALL = {"model.n_layers": 1, "model.dim": 32, "model.ffn_dim": 48,
         "training.seq_len": 32, "lr_scheduler.decay_ratio": 0}
SAVED = (".exp_avg", ".exp_avg_sq")


def words(settings):
    return [f"--{key}={value}" for key, value in settings.items()]


def compile_artifact(out, ranks, **settings):
    """`settings` have __ for the dot."""
    all_settings = {**SMALL, **dotted(settings)}
    artifacts.run("fsdp-compile", "--config", CONFIG, "--ranks", str(ranks),
                  *words(all_settings), "-o", out)
    return Artifact(out, ranks, all_settings)


def dotted(settings):
    return {key.replace("__", "."): value for key, value in settings.items()}


class Artifact:
    def __init__(self, path, ranks, settings):
        self.path, self.ranks, self.settings = path, ranks, settings
        with open(f"{path}/manifest.json") as file:
            self.manifest = json.load(file)

    def command(self, text, folder, *others, **settings):
        """A run in `folder`; checkpoints are on."""
        all_settings = {**self.settings, "training.dataset_path": text,
                        "job.dump_folder": folder, "checkpoint.enable": "true",
                        **dotted(settings)}
        return ["fsdp-run", self.path, "--config", CONFIG, "-n",
                str(self.ranks), *words(all_settings), *others]

    def run(self, *arguments, **settings):
        return artifacts.run(*self.command(*arguments, **settings))

    def fail(self, *arguments, **settings):
        """What a run that has to fail says."""
        done = subprocess.run(self.command(*arguments, **settings),
                              capture_output=True, text=True, timeout=300)
        if done.returncode == 0:
            sys.exit(f"{arguments} {settings}: does not fail\n{done.stdout}")
        return done.stderr

    def tensors(self, dump):
        """{name: values} of what a checkpoint has, from dumps of all ranks."""
        extension = os.path.splitext(dump)
        dumps = [artifacts.read_safetensors(
            f"{extension[0]}.rank{rank}{extension[1]}")
            for rank in range(self.ranks)]
        names = [r["name"] for r in self.manifest["ranges"]
                 if r["role"] == "parameter" or r["name"].endswith(SAVED)]
        return {name: artifacts.whole(self.manifest, dumps, name)
                for name in names}


@contextlib.contextmanager
def running(command, **streams):
    """A process group of its own, of which nothing goes on behind the block."""
    process = subprocess.Popen(command, start_new_session=True, text=True,
                               **streams)
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def steps(folder):
    """Committed steps of a run, and other directories; none before the first
    save."""
    saved, others = [], []
    if not os.path.isdir(f"{folder}/checkpoint"):
        return saved, others
    for name in os.listdir(f"{folder}/checkpoint"):
        if name.startswith("step-") and name[5:].isdigit():
            saved.append(int(name[5:]))
        elif name != "run.lock":
            others.append(name)
    return sorted(saved), others


def curve(folder):
    """(step, loss, gradient norm, rate) of all runs in a folder."""
    return [(line["step"], line["loss_hex"], line["grad_norm_hex"], line["lr"])
            for _, lines in artifacts.metric_runs(folder)
            for line in lines if "step" in line]


def write_text(path):
    artifacts_text = os.path.join(HERE, "..", "e2e", "Inputs", "text.py")
    with open(path, "w") as file:
        subprocess.run([sys.executable, artifacts_text], stdout=file,
                       check=True)
