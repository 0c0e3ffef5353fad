"""Jobs on GPUs in environments that cannot work: each ends soon, with a status
that is not 0 and one message that names what is wrong. Some that do work are
among them.

usage: environments.py DEVICE ARTIFACT HOST_BUILDS TEXT WORKDIR

DEVICE is fsdp-fake-device, ARTIFACT one of --target=cuda for two ranks."""
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from support.fake_device import torchrun
from support.ports import free_port
from support.processes import ranks_of_session
from support.waiting import SECONDS

# What is said where nothing is wrong.
WORKS = r"^$"
WORKS_SLOWLY = (r"^fsdp-run: warning: NCCL cannot register the arena here: transfers go "
                r"through its own buffers\n$")
WORKS_UNWATCHED = (r"^fsdp-run: warning: %d of 2 GPUs or their drivers have no 64-bit stream "
                   r"memory operations: FSDP_TIMEOUT does not end collectives that hang; "
                   r"ranks that die or stop are noticed\n$")
WORKS_UNTIMED = (r"^fsdp-run: warning: .*; \d+ of \d+ matmuls use the library's first guesses, so "
                 r"that every run gives the same bits\n$")
WORKS_PLAINLY = (r"^fsdp-run: warning: (rank 1 says: )?cuDNN attention: no engine computes it; the "
                 r"runtime's reference attention, which is slow, computes it on all ranks\n$")
WORKS_UNCAPTURED = (r"making a CUDA graph of a training step: .*; this run issues the calls of "
                    r"every step one by one")
RUN = ["--training.steps", "2", "--validation.enable", "false",
       "--sample.length", "0", "--lr_scheduler.warmup_steps", "0"]
# Never ends by itself.
LONG = ["--training.steps", "1000000", *RUN[2:]]


class Job:
    """One way to start the two ranks."""

    def __init__(self, device, artifact, host_builds, text, folder):
        self.device, self.artifact, self.folder = device, artifact, folder
        self.environment = dict(os.environ, FSDP_FAKECUDA_TWINS=host_builds)
        self.common = ["--training.dataset", "bytes",
                       "--training.dataset_path", text,
                       "--job.dump_folder", f"{folder}/out"]

    def local(self, options=RUN, **environment):
        """fsdp-run -n 2."""
        return self.start([self.device, "fsdp-run", self.artifact, "-n", "2",
                           *self.common, *options], environment)

    def launched(self, ranks, options=RUN, **environment):
        """What torchrun sets: for each rank its variables."""
        command = " ".join(["fsdp-run", self.artifact, *self.common, *options])
        line = " & ".join(
            " ".join([*(f"{name}={value}" for name, value in own.items()),
                      command]) + f"; echo $? > {self.folder}/status{i}"
            for i, own in enumerate(ranks))
        # Ends with the sum of what the ranks end with.
        line = "( " + line.replace(" & ", " ) & ( ") + " ) & wait; "
        line += f"exit $(( $(cat {self.folder}/status* | paste -sd+) > 0 ))"
        return self.start([self.device, "sh", "-c", line], environment)

    def start(self, command, environment):
        return subprocess.Popen(
            command, env={**self.environment, **environment},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, cwd=self.folder,
            start_new_session=True)


def cached(job, make):
    """What another cache folder is called, in which make(path) makes the table of matmuls."""
    known, = (name for name in os.listdir(os.environ["FSDP_CACHE_DIR"])
              if name.startswith("matmuls-"))
    folder = f"{job.folder}/cache"
    os.makedirs(folder)
    make(os.path.join(folder, known))
    return folder


def cut_off(path):
    with open(path, "w") as file:
        file.write('{"gpu": "stand-in", ')


def slurm_job(size=2):
    """What sbatch gives a job's script: Slurm 22.05 with this machine as its
    only one. Nobody has asked for a number of tasks per machine."""
    name = socket.gethostname()
    return {"SLURM_JOB_ID": f"{os.getpid()}", "SLURM_JOBID": f"{os.getpid()}",
            "SLURM_JOB_NAME": "fsdp", "SLURM_JOB_NUM_NODES": "1",
            "SLURM_JOB_NODELIST": name, "SLURM_NODELIST": name,
            "SLURM_NNODES": "1", "SLURMD_NODENAME": name,
            "SLURM_JOB_CPUS_PER_NODE": "2", "SLURM_CPUS_ON_NODE": "2",
            "SLURM_NTASKS": f"{size}", "SLURM_NPROCS": f"{size}",
            "SLURM_TASKS_PER_NODE": f"{size}", "SLURM_GTIDS": "0",
            "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0"}


def srun(step, size=2):
    """What srun sets for both tasks of a step."""
    return [{**slurm_job(size), "SLURM_PROCID": rank, "SLURM_LOCALID": rank,
             "SLURM_GTIDS": "0,1", "SLURM_STEP_ID": step, "SLURM_STEPID": step,
             "SLURM_STEP_NODELIST": socket.gethostname(),
             "SLURM_STEP_NUM_NODES": 1, "SLURM_STEP_NUM_TASKS": size,
             "SLURM_STEP_TASKS_PER_NODE": size,
             "SLURM_SRUN_COMM_HOST": "127.0.0.1",
             "SLURM_LAUNCH_NODE_IPADDR": "127.0.0.1"} for rank in range(2)]


def changed(ranks, rank, **own):
    """The same with other variables for one rank."""
    return [{**one, **own} if i == rank else one for i, one in enumerate(ranks)]


def after_first_step(number, action):
    """Does `action` to a rank once the job has printed a step."""
    def disturb(process):
        for line in process.stdout:
            if line.startswith("step:"):
                break
        os.kill(ranks_of_session(process.pid)[number], action)
    return disturb


def cases(occupied):
    """(name, how to start, what is said, what to do to the running job)."""
    port = free_port
    yield "fewer GPUs than ranks", lambda job: job.local(
        FSDP_FAKECUDA_DEVICES="1"), r"ranks 0 and 1 have the same GPU"
    yield "one GPU, shared on purpose", lambda job: job.local(
        FSDP_FAKECUDA_DEVICES="1", FSDP_SHARE_GPU="1"), WORKS
    yield "no GPU", lambda job: job.local(
        FSDP_FAKECUDA_DEVICES="0"), r"cannot use a GPU: no CUDA-capable device"
    yield "older architecture", lambda job: job.local(
        FSDP_FAKECUDA_CAPABILITY="80"), r"is for sm_90, the GPU on \S+ is sm_80"
    yield "later architecture", lambda job: job.local(
        FSDP_FAKECUDA_CAPABILITY="100"), WORKS
    yield "older driver", lambda job: job.local(
        FSDP_FAKECUDA_DRIVER="12040"
    ), r"driver on \S+ is for CUDA 12.4, .*build with a CUDA Toolkit 12"
    yield "no driver", lambda job: job.local(
        FSDP_FAKECUDA_DRIVER="0"), r"there is no NVIDIA driver"
    yield "time-out that is no number", lambda job: job.local(
        FSDP_JOIN_TIMEOUT="soon"), r"FSDP_JOIN_TIMEOUT = 'soon' is no number"
    yield "sharing that is no choice", lambda job: job.local(
        FSDP_SHARE_GPU="yes"), r"FSDP_SHARE_GPU = 'yes' is no choice"
    yield "a rank is killed", lambda job: job.local(
        LONG), r"rank 1 was ended by signal 9", after_first_step(1, signal.SIGKILL)
    yield "the first rank is killed", lambda job: job.local(
        LONG), r"rank 0 was ended by signal 9", after_first_step(0, signal.SIGKILL)
    yield "a rank stands still", lambda job: job.local(
        LONG, FSDP_HEARTBEAT="3"), r"stopped", after_first_step(1, signal.SIGSTOP)
    yield "a kernel hangs", lambda job: job.local(
        LONG, FSDP_TIMEOUT="5", FSDP_FAKECUDA_HANGS="1", FSDP_FAKECUDA_FAULT="hang:20@1"
    ), r'^fsdp-run: rank 0: \w+ "[^"]+" .* has not ended within 5 s .*; rank 1 has not arrived'
    yield "no registration", lambda job: job.local(
        FSDP_FAKECUDA_UNREGISTERED="all"), WORKS_SLOWLY
    yield "no registration on one rank", lambda job: job.local(
        FSDP_FAKECUDA_UNREGISTERED="1"), WORKS_SLOWLY
    yield "no windows", lambda job: job.local(FSDP_FAKECUDA_NO_WINDOWS="1"), WORKS
    yield "windows that NCCL refuses", lambda job: job.local(
        FSDP_FAKECUDA_NO_WINDOWS="refused"), WORKS
    yield "no progress counters", lambda job: job.local(
        FSDP_FAKECUDA_NO_WRITES="1"), WORKS_UNWATCHED % 2
    yield "progress counters of one rank alone", lambda job: job.launched(
        changed(torchrun(port()), 1, FSDP_FAKECUDA_NO_WRITES="unknown")), WORKS_UNWATCHED % 1
    yield "no cache folder", lambda job: job.local(FSDP_CACHE_DIR=""), WORKS
    yield "a cache folder below a file", lambda job: job.local(
        FSDP_CACHE_DIR="/dev/null/cache"), WORKS_UNTIMED
    yield "a cache folder that is a file", lambda job: job.local(
        FSDP_CACHE_DIR=job.artifact + "/manifest.json"), WORKS_UNTIMED
    yield "a cache that is cut off", lambda job: job.local(
        FSDP_CACHE_DIR=cached(job, cut_off)), r"matmuls-\S+json: .*; remove it, and matmuls are"
    yield "a cache that is a pipe", lambda job: job.local(
        FSDP_CACHE_DIR=cached(job, os.mkfifo)), r"is no regular file, which keeps the choice"
    yield "a cache that is a folder", lambda job: job.local(
        FSDP_CACHE_DIR=cached(job, os.mkdir)), r"is no regular file, which keeps the choice"
    yield "an empty cache", lambda job: job.local(
        FSDP_CACHE_DIR=f"{job.folder}/new/cache"), WORKS
    yield "no attention by cuDNN", lambda job: job.local(
        FSDP_FAKECUDA_NO_ATTENTION="all"), WORKS_PLAINLY
    yield "a rank without attention by cuDNN", lambda job: job.local(
        FSDP_FAKECUDA_NO_ATTENTION="1"), WORKS_PLAINLY
    yield "a step that cannot be captured", lambda job: job.local(
        FSDP_FAKECUDA_FAULT="captured-allocation:5"), WORKS_UNCAPTURED
    yield "a transfer that cannot be captured", lambda job: job.local(
        FSDP_FAKECUDA_FAULT="captured-transfer:5"), WORKS_UNCAPTURED
    yield "a transfer that one rank cannot capture", lambda job: job.local(
        FSDP_FAKECUDA_FAULT="captured-transfer:5@1"), WORKS_UNCAPTURED
    yield "a rank that cannot capture its step", lambda job: job.local(
        FSDP_FAKECUDA_FAULT="captured-question:5@1"), WORKS_UNCAPTURED
    yield "as torchrun", lambda job: job.launched(torchrun(port())), WORKS
    yield "as srun", lambda job: job.launched(srun(0)), WORKS
    yield "as srun, a GPU for each task", lambda job: job.launched(
        changed(srun(1), 1, FSDP_FAKECUDA_FIRST_DEVICE=1),
        FSDP_FAKECUDA_DEVICES="1"), WORKS
    yield "as srun, one GPU for all tasks", lambda job: job.launched(
        srun(2), FSDP_FAKECUDA_DEVICES="1"), r"have the same GPU"
    yield "in a script of Slurm", lambda job: job.local(**slurm_job()), WORKS
    yield "torchrun in a script of Slurm", lambda job: job.launched(
        torchrun(port()), **slurm_job()), WORKS
    yield "each rank has a mistake of its own", lambda job: job.launched(
        changed(changed(torchrun(port()), 0, FSDP_FAKECUDA_DRIVER="12040"),
                1, FSDP_FAKECUDA_CAPABILITY="80")
    ), r"(?s)^(?!.*sm_80).*driver on \S+ is for CUDA 12.4"
    yield "no launcher names the job", lambda job: job.launched(
        [{"PMI_RANK": rank, "PMI_SIZE": 2, "MPI_LOCALRANKID": rank,
          "MPI_LOCALNRANKS": 2} for rank in range(2)]
    ), r"set FSDP_JOB to a name that no other job has"
    yield "a rank is missing", lambda job: job.launched(
        torchrun(port())[:1], FSDP_JOIN_TIMEOUT="2"
    ), r"rank 1 of 2 did not connect"
    yield "the first rank is missing", lambda job: job.launched(
        torchrun(port())[1:], FSDP_JOIN_TIMEOUT="2"
    ), r"rank 1 cannot reach rank 0"
    yield "the port is taken", lambda job: job.launched(
        [{**one, "FSDP_PORT": occupied} for one in torchrun(port())],
        FSDP_JOIN_TIMEOUT="2"
    ), rf"cannot listen at port {occupied}: Address already in use"
    yield "a port that is none", lambda job: job.launched(
        [{**one, "MASTER_PORT": "70000"} for one in torchrun(port())]
    ), r"MASTER_PORT = '70000' is no port"
    yield "an address that is none", lambda job: job.launched(
        [{**one, "MASTER_ADDR": "no.such.host.invalid"}
         for one in torchrun(port())], FSDP_JOIN_TIMEOUT="2"
    ), r"no\.such\.host\.invalid"
    yield "ranks of two jobs", lambda job: job.launched(
        changed(torchrun(port()), 1, TORCHELASTIC_RUN_ID="other"),
        FSDP_JOIN_TIMEOUT="5"), r"connections that were not of this job"
    yield "another number of ranks", lambda job: job.launched(
        torchrun(port(), size=3)), r"compiled for 2 \(dp_shard=2\), this job has 3"
    yield "a rank that is not of the job", lambda job: job.launched(
        changed(torchrun(port()), 1, RANK=5), FSDP_JOIN_TIMEOUT="2"
    ), r"RANK = 5 is not below WORLD_SIZE = 2"


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def is_good(message):
    """Whether a job that says it works."""
    return message in (WORKS, WORKS_SLOWLY, WORKS_UNWATCHED % 1, WORKS_UNWATCHED % 2,
                       WORKS_UNTIMED, WORKS_UNCAPTURED, WORKS_PLAINLY)


def check(start, message, disturb=None):
    """What is wrong with how a job ends; and what it said."""
    begin = time.monotonic()
    process = start()
    # One that hangs is ended, and fails by its time.
    alarm = threading.Timer(SECONDS, end, [process])
    alarm.start()
    if disturb:
        disturb(process)
        begin = time.monotonic()
    _, errors = process.communicate()
    alarm.cancel()
    seconds = time.monotonic() - begin
    problems = []
    works = is_good(message)
    if (process.returncode == 0) != works:
        problems.append(f"the status is {process.returncode}")
    if not re.search(message, errors):
        problems.append(f"does not say {message}")
    if seconds >= SECONDS:
        problems.append(f"took {seconds:.0f} s")
    if ranks_of_session(process.pid):
        problems.append("a rank is left")
    end(process)
    return problems, errors


def main(device, artifact, host_builds, text, work):
    shutil.rmtree(work, ignore_errors=True)

    def outcome(case):
        number, (name, start, message, *disturb) = case
        os.makedirs(f"{work}/{number}")
        job = Job(device, artifact, host_builds, text, f"{work}/{number}")
        return name, message, *check(lambda: start(job), message, *disturb)

    # The first run of an artifact times matmuls, which the others do not.
    outcome(("first", ("a good one", lambda job: job.local(), WORKS)))
    failures = bad = good = 0
    with socket.socket() as taken, ThreadPoolExecutor(3) as pool:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        for name, message, problems, errors in pool.map(
                outcome, enumerate(cases(taken.getsockname()[1]))):
            bad += not is_good(message)
            good += is_good(message)
            failures += bool(problems)
            said = errors.strip().replace("\n", "\n    ")
            # What went wrong is seen even where a reader of the output stops early.
            print(f"{name}: {'; '.join(problems) or 'good'}\n    {said}",
                  file=sys.stderr if problems else sys.stdout)
    print(f"{bad} bad environments and {good} good ones, {failures} end badly")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
