"""Stages that say whether a GPU does what it must."""
import os
import re
import shutil
import signal
import socket
import subprocess
import time

from machine import Failed, Skipped, bits_of, dumps_of, seconds_of, steps_of


def versions(there):
    """driver and libraries"""
    yield from there.checks("versions")
    if shutil.which("nvidia-smi"):
        query = "name,driver_version,memory.total,clocks.max.sm,power.limit"
        values = there.run(["nvidia-smi", f"--query-gpu={query}", "--format=csv,noheader"],
                           wrapped=False).splitlines()
        for value in values:
            yield dict(zip(["name", *query.split(",")[1:]], value.split(", ")))


def ceilings(there):
    """bandwidth of a copy, speed of a large matmul"""
    small = ["--bytes", 1 << 20, "--side", 128] if there.small else []
    yield from there.checks("ceilings", *small)


def matmuls(there):
    """every matmul of the models: error, repeats, alignment, time"""
    names = [*there.prepared["tiny"]]
    if not there.small:
        names += [model["artifact"] for model in there.prepared["timed"].values()]
    yield from there.checks("gemms", *[there.path("artifacts", name) for name in names])


def attention(there):
    """cuDNN's attention: workspace, repeats, error, time"""
    yield from there.checks("attention", "--longest", 64 if there.small else 8192)


def _outputs(text):
    """{output: what fsdp-run prints of it}; the last word is of all its bits."""
    return dict(re.findall(r"^  (\S+): (.*)$", text, re.M))


def kernels(there):
    """every kernel of the runtime and emitted ones: the CPU's bits"""
    inputs = there.path("operations.safetensors")
    for program, expected in there.prepared["operations"].items():
        wanted, got = _outputs(expected), _outputs(there.call("operations", program, inputs))
        if not wanted:
            raise Failed(f"the CPU printed no output of {program}")
        different = [name for name in wanted if wanted[name] != got.get(name)]
        yield {"name": program, "outputs": len(wanted), "different": ", ".join(different) or "none",
               "passed": not different}


def train(there):
    """small models: the CPU's losses, repeats, a graph's bits = single launches'"""
    for name, model in there.prepared["tiny"].items():
        wanted = model["losses"]
        first = there.train("first", name, model["ranks"], len(wanted))
        again = there.train("again", name, model["ranks"], len(wanted))
        eager = there.train("eager", name, model["ranks"], len(wanted), "--no-graph")
        got = [step["loss"] for step in steps_of(first)]
        error = max(abs(a - b) / abs(b) for a, b in zip(got, wanted))
        # The libraries round in another order: bf16 keeps 8 bits, f32 24, and
        # training carries it on.
        bar = 1e-4 if "f32" in name else 2e-2
        left = dumps_of(first)
        repeats = bool(left) and left == dumps_of(again)
        same = bool(left) and left == dumps_of(eager)
        yield {"name": name, "steps": len(got), "relative difference of losses": error,
               "repeats": repeats, "graph = eager": same,
               "passed": len(got) == len(wanted) and error <= bar and repeats and same}


def ranks(there):
    """ranks that share a GPU: fully_shard = replicate"""
    for n in there.prepared["ranks"]:
        shard = there.train("shard", f"tiny-fully_shard-{n}", n, 8)
        replicate = there.train("replicate", f"tiny-replicate-{n}", n, 8)
        yield {"name": f"{n} ranks", "steps": len(bits_of(shard)),
               "passed": bool(bits_of(shard)) and bits_of(shard) == bits_of(replicate)}


def fast(there):
    """compile.reduce = fast: near the losses of exact, and the time of a step beside its"""
    for name, pair in there.prepared["fast"].items():
        ran = {reduce: there.train(reduce, pair[reduce], pair["ranks"], there.steps_to_time(), dump=False)
               for reduce in ("exact", "fast")}
        # Sums in another order, which training carries on.
        exact, other = ([value for step in steps_of(ran[reduce])[:8]
                         for value in (step["loss"], step["grad_norm"])]
                        for reduce in ("exact", "fast"))
        error = max(abs(a - b) / abs(b) for a, b in zip(other, exact))
        seconds = {reduce: seconds_of(folder) for reduce, folder in ran.items()}
        yield {"name": name, "relative difference of losses and norms": error,
               "ms exact": 1e3 * seconds["exact"], "ms fast": 1e3 * seconds["fast"],
               "fast / exact": seconds["fast"] / seconds["exact"],
               "passed": len(other) == len(exact) and error <= 1e-3}


def _free_port():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def kill(there):
    """a rank is killed: the other ends with an error in time"""
    seconds = 20
    folder, port = there.scratch("kill"), _free_port()
    # Nobody but the ranks themselves can notice.
    script = ('for r in 0 1; do RANK=$r LOCAL_RANK=$r "$@" > "$0.$r" 2>&1 & echo $! >> "$0.pids"; '
              'done; for p in $(cat "$0.pids"); do wait $p; echo $? >> "$0.status"; done')
    place = os.path.join(folder, "rank")
    command = there.training("tiny-fully_shard-2", 1000000, folder)
    process = subprocess.Popen(
        [*there.device, "bash", "-c", script, place, *map(str, command)],
        env=there.environment(WORLD_SIZE=2, LOCAL_WORLD_SIZE=2, MASTER_ADDR="127.0.0.1",
                              MASTER_PORT=port, FSDP_TIMEOUT=10, FSDP_HEARTBEAT=5,
                              **there.host_builds("tiny-fully_shard-2")),
        start_new_session=True)
    try:
        _wait(lambda: _steps(folder) >= 3, there.left(there.limit), "no step ended")
        with open(place + ".pids") as pids:
            os.kill(int(pids.read().split()[1]), signal.SIGKILL)
        begin = time.monotonic()
        _wait(lambda: process.poll() is not None, seconds, "the other rank goes on")
        took = time.monotonic() - begin
        with open(place + ".status") as statuses:
            codes = [int(code) for code in statuses.read().split()]
        with open(place + ".0") as output:
            said = output.read().strip().splitlines()
        yield {"name": "killed", "seconds": took, "status of the other": codes[0],
               "it says": said[-1] if said else "", "passed": codes[0] not in (0, 137)}
    finally:
        # Nothing may run beside the next stages.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def _steps(folder):
    try:
        return len(steps_of(folder))
    except (OSError, ValueError):
        return 0


def _wait(condition, seconds, what):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise Failed(f"{what} within {seconds:g} s")
        time.sleep(0.05)


def sanitizer(there):
    """compute-sanitizer on a small model"""
    tool = shutil.which("compute-sanitizer")
    if there.device or not tool:
        raise Skipped("there is no compute-sanitizer")
    for check in ("memcheck", "racecheck"):
        folder = there.scratch(check)
        said = there.run([tool, "--tool", check, "--error-exitcode", 9, "--target-processes",
                          "all", *there.training("tiny", 2, folder), "--no-graph"])
        summary = re.findall(r"=+ ((?:ERROR|RACECHECK) SUMMARY.*)", said)
        yield {"name": check, "summary": summary[-1] if summary else "", "passed": bool(summary)}
