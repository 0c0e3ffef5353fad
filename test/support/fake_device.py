"""Runs of one artifact on the stand-in device, and of the same on the CPU.

    python3 -m support.fake_device FOLDER OPTIONS...

compiles into FOLDER, with these options of fsdp-compile: cpu and cuda
(artifacts), step.cu, step.mlir (the planned exec program of cuda) and host-builds.so
(cuda's kernels for the device)."""
import glob
import os
import shutil
import subprocess
import sys

from support import cache, commands, runs
from support.waiting import SECONDS

FAKE_CUDA = os.path.join(cache.SOURCE, "test", "fakecuda")
# What host builds are made of, beside the step and the headers.
HOST_BUILDS = [os.path.join(FAKE_CUDA, "host-builds"), os.path.join(cache.SOURCE, "test", "shim")]


def compile(folder, options):
    """Everything that a job needs, or what another test has compiled."""
    command = ["fsdp-compile", *options]

    def make(target):
        os.makedirs(target, exist_ok=True)
        for name, own in (("cpu", []), ("cuda", ["--target=cuda"]),
                          ("step.cu", ["--target=cuda", "--emit=cuda"]),
                          ("step.mlir", ["--target=cuda", "--emit=mlir"])):
            commands.run(*command, *own, "-o", f"{target}/{name}")
        commands.run("sh", os.path.join(FAKE_CUDA, "host-builds", "make-step-host-build.sh"),
                     f"{target}/step.cu", f"{target}/host-builds.so", cache.SOURCE)
        return ""
    cache.obtain([*command, "for fsdp-fake-device"], make, folder, HOST_BUILDS)


#===------------------------------------------------------------------------===#
# What launchers tell ranks
#===------------------------------------------------------------------------===#

def torchrun(port, size=2, ranks=2, **own):
    """The variables of the first ranks on this machine, all that torchrun sets."""
    return [{"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank,
             "LOCAL_WORLD_SIZE": size, "GROUP_RANK": 0, "GROUP_WORLD_SIZE": 1,
             "ROLE_RANK": rank, "ROLE_WORLD_SIZE": size, "ROLE_NAME": "default",
             "MASTER_ADDR": "localhost", "MASTER_PORT": port,
             "OMP_NUM_THREADS": 1,
             # Where another test has the same port by chance, ranks keep apart.
             "TORCHELASTIC_RUN_ID": f"job-{os.getpid()}-{port}",
             "TORCHELASTIC_RESTART_COUNT": 0, "TORCHELASTIC_MAX_RESTARTS": 0,
             "TORCHELASTIC_USE_AGENT_STORE": "True",
             "TORCHELASTIC_SIGNALS_TO_HANDLE": "SIGTERM,SIGINT,SIGHUP,SIGQUIT",
             "TORCH_NCCL_ASYNC_ERROR_HANDLING": 1, **own}
            for rank in range(ranks)]


#===------------------------------------------------------------------------===#
# Runs
#===------------------------------------------------------------------------===#


class Result:
    def __init__(self, folder, status, output):
        self.folder, self.status, self.output = folder, status, output
        self.trace = os.path.join(folder, "trace")

    def dumps(self):
        """The bytes of every rank's parameters and moments."""
        contents = []
        for name in sorted(glob.glob(os.path.join(self.folder, "dump.rank*"))):
            with open(name, "rb") as file:
                contents.append(file.read())
        return contents

    def losses(self):
        return [(step["loss_hex"], step["grad_norm"])
                for _, steps in runs.metric_runs(os.path.join(self.folder, "out"))
                for step in steps if "loss_hex" in step]

    def remove(self):
        shutil.rmtree(self.folder)


class Job:
    """`arguments` are those of fsdp-run; both targets get the same."""

    def __init__(self, folder, device, ranks, arguments):
        self.folder, self.device = folder, device
        # What a core can do does not matter here, and measuring it costs time.
        self.arguments = ["-n", str(ranks), *arguments, "--metrics.peak_tflops", "1"]
        self.ranks = ranks

    def _run(self, name, command, artifact, settings):
        place = os.path.join(self.folder, "runs", name)
        # A run would go on with the records of one before.
        shutil.rmtree(place, ignore_errors=True)
        os.makedirs(place)
        command = [*command, "fsdp-run", os.path.join(self.folder, artifact), *self.arguments,
                   "--job.dump_folder", os.path.join(place, "out"),
                   "--dump", os.path.join(place, "dump")]
        settings = {key: value.replace("%t", place) for key, value in settings.items()}
        # Only a fault in the tests themselves makes a run last so long.
        done = subprocess.run(command, env={**os.environ, **settings}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=SECONDS)
        return Result(place, done.returncode, done.stdout)

    def on_cpu(self):
        result = self._run("cpu", [], "cpu", {})
        if result.status != 0:
            raise SystemExit(f"the CPU's run fails:\n{result.output}")
        return result

    def on_device(self, name, **settings):
        """`settings` without their prefix, in small letters."""
        given = {f"FSDP_FAKECUDA_{key.upper()}": str(value) for key, value in settings.items()}
        given["FSDP_FAKECUDA_TWINS"] = os.path.join(self.folder, "host-builds.so")
        return self._run(name, [self.device], "cuda", given)


def same_bytes(result, reference):
    return (result.status == 0 and result.dumps() == reference.dumps()
            and result.losses() == reference.losses())


if __name__ == "__main__":
    compile(sys.argv[1], sys.argv[2:])
