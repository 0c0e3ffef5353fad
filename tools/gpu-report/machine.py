"""What stages run programs with."""
import glob
import json
import os
import shutil
import signal
import site
import statistics
import subprocess
import tempfile
import threading
import time


# Steps that load, capture and warm up.
WARM_UP = 5


class Failed(Exception):
    """A program or a check failed: the stage ends, the next one runs."""


class Skipped(Exception):
    """The machine lacks what the stage needs."""


class OutOfTime(Exception):
    """The budget of the whole call is used up: what has been found is kept."""


def failure(name, reason):
    """A row of what failed."""
    return {"name": name, "error": str(reason).strip().splitlines()[-1]}


class Machine:
    def __init__(self, args):
        self.folder = os.path.abspath(args.folder)
        self.small, self.limit = args.small, args.limit
        self.budget = args.budget
        self.deadline = time.monotonic() + args.budget if args.budget else float("inf")
        self.models = args.model
        self.torch, self.torch_limit = args.torch, args.torch_limit
        self.device = [os.path.abspath(args.device)] if args.device else []
        with open(self.path("prepared.json")) as file:
            self.prepared = json.load(file)
        self.settings = {**os.environ, "NCCL_SOCKET_IFNAME": "lo", "FSDP_SHARE_GPU": "1"}
        self._find_libraries()

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def program(self, name):
        return self.path("bin", name)

    def scratch(self, name):
        """An empty folder: a run would go on with the records of one before."""
        folder = self.path("runs", name)
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        return folder

    def environment(self, **settings):
        return {**self.settings, **{key: str(value) for key, value in settings.items()}}

    def left(self, limit):
        """The seconds that a program may take: its limit, or what the budget leaves."""
        left = self.deadline - time.monotonic()
        if left < 1:
            raise OutOfTime
        return min(limit, left)

    def lines(self, command, wrapped=True, limit=None, **settings):
        """What a program that must succeed prints, line by line as it comes."""
        command = [*(self.device if wrapped else []), *map(str, command)]
        seconds = self.left(limit or self.limit)
        said = []
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(command, env=self.environment(**settings), text=True,
                                       stdout=subprocess.PIPE, stderr=errors,
                                       errors="replace", start_new_session=True)
            ended = threading.Event()
            clock = threading.Timer(seconds, lambda: (ended.set(), _end(process)))
            clock.start()
            try:
                for line in process.stdout:
                    said = [*said[-40:], line]
                    yield line
                status = process.wait()
            finally:
                clock.cancel()
                _end(process)
            errors.seek(0)
            text = "".join(said) + errors.read().decode(errors="replace")
        if ended.is_set():
            self.left(seconds)
            raise Failed(f"{os.path.basename(command[0])} did not end within "
                         f"{seconds:g} s: {' '.join(command)}")
        if status != 0:
            raise Failed(f"{' '.join(command)}\nends with status {status}: "
                         f"{text[-2000:].strip()}")

    def run(self, command, **options):
        """The whole output."""
        return "".join(self.lines(command, **options))

    def checks(self, *arguments):
        """Rows of fsdp-gpu-check, as they come."""
        for line in self.lines([self.program("fsdp-gpu-check"), *arguments]):
            yield json.loads(line)

    def train(self, name, artifact, ranks, steps, *options, dump=True, **settings):
        """A run's folder: out/metrics.jsonl and, unless nobody wants them, dump.rank<r>,
        which are as large as parameters and moments."""
        folder = self.scratch(name)
        self.run([*self.training(artifact, steps, folder, dump), "-n", ranks, *options],
                 **self.host_builds(artifact), **settings)
        return folder

    def training(self, artifact, steps, folder, dump=True):
        return [self.program("fsdp-run"), self.path("artifacts", artifact),
                "--training.steps", steps, "--training.dataset", "bytes",
                "--training.dataset_path", self.path("text"),
                "--lr_scheduler.warmup_steps", 2, "--validation.enable", "false",
                "--sample.length", 0, "--metrics.log_freq", 1, "--metrics.peak_tflops", 989,
                "--job.dump_folder", os.path.join(folder, "out"),
                *(["--dump", os.path.join(folder, "dump")] if dump else [])]

    def timed(self):
        """The models to time: all, or those that the command line names."""
        models = self.prepared["timed"]
        unknown = [name for name in self.models if name not in models]
        if unknown:
            raise Failed(f"no model is called '{unknown[0]}'; there are "
                         + ", ".join(f"'{name}'" for name in models))
        return {name: model for name, model in models.items()
                if not self.models or name in self.models}

    def steps_to_time(self):
        return WARM_UP + (3 if self.small else 20)

    def call(self, artifact, program, inputs):
        """What a program of an artifact prints of its outputs."""
        return self.run([self.program("fsdp-run"), self.path("artifacts", artifact), "-n", 1,
                         "--program", program, "--load", inputs], **self.host_builds(artifact))

    def arena_of(self, artifact):
        with open(self.path("artifacts", artifact, "manifest.json")) as file:
            return json.load(file)["arena"]["bytes"]

    def host_builds(self, artifact):
        """Of its kernels, which the stand-in needs."""
        host_builds = self.path("artifacts", artifact, "host-builds.so")
        return {"FSDP_FAKECUDA_TWINS": host_builds} if os.path.exists(host_builds) else {}

    def _find_libraries(self):
        """Where CUDA's libraries are not installed, PyTorch's wheels have them."""
        if self.device:
            return
        linked = subprocess.run(["ldd", self.program("fsdp-rank-cuda")], text=True,
                                stdout=subprocess.PIPE, check=True).stdout
        if "not found" not in linked:
            return
        folders = [folder for base in [*site.getsitepackages(), "/opt/torch/.venv/lib/python3*/site-packages"]
                   for folder in glob.glob(os.path.join(base, "nvidia", "*", "lib"))]
        known = os.environ.get("LD_LIBRARY_PATH")
        self.settings["LD_LIBRARY_PATH"] = ":".join(folders + ([known] if known else []))


def _end(process):
    """With all that it has started."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def steps_of(folder):
    """The records of a run's steps."""
    with open(os.path.join(folder, "out", "metrics.jsonl")) as lines:
        records = [json.loads(line) for line in lines]
    return [record for record in records if "loss_hex" in record]


def seconds_of(folder):
    """The median of the steps after the warm-up."""
    seconds = [step["seconds"] for step in steps_of(folder)][WARM_UP:]
    if not seconds:
        raise Failed("the run has no step behind its warm-up")
    return statistics.median(seconds)


def bits_of(folder):
    return [(step["loss_hex"], step.get("grad_norm")) for step in steps_of(folder)]


def dumps_of(folder):
    contents = []
    for name in sorted(glob.glob(os.path.join(folder, "dump.rank*"))):
        with open(name, "rb") as file:
            contents.append(file.read())
    return contents
