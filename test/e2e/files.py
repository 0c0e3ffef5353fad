"""Files, devices, pipes and links that the tools write to, and signals that
come meanwhile.

usage: files.py CONFIG TEXT WORKDIR"""
import os
import resource
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree

from support import processes
from support.waiting import wait_until

config, text, work = (os.path.abspath(argument) for argument in sys.argv[1:])
TRACE = ["fsdp-trace", "llama3_8b"]
COMPILE = ["fsdp-compile", "--config", config, "--ranks", "1"]
checks = 0


def check(condition, what):
    global checks
    checks += 1
    if not condition:
        sys.exit(f"files.py: {what}")


def run(command, **options):
    return subprocess.run(command, capture_output="stdout" not in options,
                          text=True, timeout=300, **options)


def succeed(command, **options):
    done = run(command, **options)
    check(done.returncode == 0, f"{command}: {done.stderr}")
    return done.stdout


def read(path):
    with open(path) as file:
        return file.read()


def folder(name):
    path = f"{work}/{name}"
    os.makedirs(path)
    return path


#===------------------------------------------------------------------------===#
# Where -o leads
#===------------------------------------------------------------------------===#

def check_targets(name, command, expected):
    """Links, permissions, devices, pipes and descriptors after -o."""
    place = folder(name)
    command = [*command, "-o"]

    succeed([*command, f"{place}/plain"])
    check(read(f"{place}/plain") == expected, f"{name} writes other text")
    os.chmod(f"{place}/plain", 0o600)
    os.symlink("plain", f"{place}/link")
    succeed([*command, f"{place}/link"])
    check(os.path.islink(f"{place}/link"), f"{name} replaces a link")
    check(stat.S_IMODE(os.stat(f"{place}/plain").st_mode) == 0o600,
          f"{name} changes permissions")

    os.mkfifo(f"{place}/pipe")
    got = []
    reader = threading.Thread(target=lambda: got.append(read(f"{place}/pipe")))
    reader.start()
    succeed([*command, f"{place}/pipe"])
    reader.join(60)
    check(got == [expected], f"{name} loses the text of a pipe")

    # As /dev/stdout, which must not be at stake here.
    os.symlink("/proc/self/fd/1", f"{place}/stdout")
    check(succeed([*command, f"{place}/stdout"]) == expected,
          f"{name} loses the text of /dev/stdout")
    with open(f"{place}/both", "w") as both:
        both.write("head\n")
        both.flush()
        succeed([*command, f"{place}/stdout"], stdout=both)
    check(read(f"{place}/both") == "head\n" + expected,
          f"{name} overwrites what is in /dev/stdout")

    kept = {"plain", "link", "pipe", "stdout", "both"}
    try:
        os.mknod(f"{place}/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        kept.add("null")
    except PermissionError:
        print("not checked: devices cannot be made here")
    if "null" in kept:
        succeed([*command, f"{place}/null"])
        check(stat.S_ISCHR(os.stat(f"{place}/null").st_mode),
              f"{name} replaces a device")
    check(set(os.listdir(place)) == kept, f"{name} leaves files behind")


def check_object():
    """The host compiler's product, to a device and to a file."""
    place = folder("object")
    command = [*COMPILE, "--emit=object", "-o"]
    succeed([*command, f"{place}/step.o"])
    with open(f"{place}/step.o", "rb") as file:
        check(file.read(4) == b"\x7fELF", "--emit=object makes no object")
    os.symlink("/proc/self/fd/1", f"{place}/link")
    done = subprocess.run([*command, f"{place}/link"], capture_output=True,
                          timeout=300)
    check(done.stdout[:4] == b"\x7fELF", "--emit=object loses its product")
    check(sorted(os.listdir(place)) == ["link", "step.o"],
          "--emit=object leaves files behind")


#===------------------------------------------------------------------------===#
# Output that cannot be taken
#===------------------------------------------------------------------------===#

def check_gone_reader(command):
    """A pipe that is closed after one line, as by `head -1`."""
    for ignore in (False, True):
        def prepare():
            signal.signal(signal.SIGPIPE,
                          signal.SIG_IGN if ignore else signal.SIG_DFL)
        process = subprocess.Popen(command, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True,
                                   restore_signals=False, preexec_fn=prepare)
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
        status = process.wait(300)
        good = ((status, said) == (-signal.SIGPIPE, "") if not ignore else
                status == 1 and said == f"{command[0]}: error: cannot write "
                "standard output: Broken pipe\n")
        check(good, f"{command} | head -1: status {status}, {said}")


def wait_for_step(process):
    while not process.stdout.readline().startswith("step:"):
        check(process.poll() is None, "fsdp-run does not train")


def check_gone_reader_of_a_run(artifact, ranks):
    """A run ends with its reader; where that is no signal, it goes on without
    a reader and says so."""
    for ignore in (False, True):
        place = folder(f"reader-{ranks}-{ignore}")
        steps = "1000" if ignore else "1000000"  # more than a pipe holds
        process = start_run(artifact, "-n", str(ranks), "--training.steps",
                            steps, "--job.dump_folder", f"{place}/run",
                            signals={signal.SIGPIPE: signal.SIG_IGN if ignore
                                     else signal.SIG_DFL})
        wait_for_step(process)
        process.stdout.close()
        said = process.stderr.read()
        status = process.wait(300)
        left = os.listdir(f"{place}/run")
        good = ("summary.json" in left and status == 1 and said.startswith(
                    "fsdp-run: cannot write standard output: Broken pipe")
                if ignore else (status, said) == (128 + signal.SIGPIPE, ""))
        check(good and "run.lock" not in left,
              f"fsdp-run -n {ranks} | head -1: {status}, {left}, {said}")


def check_full(command, message):
    """A device that is always full."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=300)
    check(done.returncode == 1 and done.stderr.startswith(message) and
          done.stderr.count("\n") == 1,
          f"{command} > /dev/full: status {done.returncode}, {done.stderr}")


def check_limit(name, command):
    """A disk that is full after some bytes leaves what was there."""
    place = folder(name)
    with open(f"{place}/out", "w") as file:
        file.write("old")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
    done = run([*command, "-o", f"{place}/out"], preexec_fn=limit)
    check(done.returncode == 1 and "out': File too large" in done.stderr and
          done.stderr.count("\n") == 1, f"{name}: {done.stderr}")
    check(read(f"{place}/out") == "old" and os.listdir(place) == ["out"],
          f"{name} destroys the file that was there")


#===------------------------------------------------------------------------===#
# Signals
#===------------------------------------------------------------------------===#

def check_stopped_compiler(number):
    """The host compiler and its child end with fsdp-compile."""
    place = folder(f"stopped-{number}")
    os.mkdir(f"{place}/tmp")
    compiler = f"{place}/compiler"
    with open(compiler, "w") as file:
        file.write("#!/bin/sh\ncase $1 in -dump*) echo 1; exit;; esac\n"
                   f"echo $$ > {place}/started\n"
                   f"sh -c 'echo $$ >> {place}/started; exec sleep 600'\n")
    os.chmod(compiler, 0o755)
    process = subprocess.Popen([*COMPILE, "--cxx", compiler, "-o",
                                f"{place}/new/artifact"],
                               stderr=subprocess.PIPE, text=True,
                               env=dict(os.environ, TMPDIR=f"{place}/tmp"),
                               preexec_fn=lambda: signal.signal(number,
                                                                signal.SIG_DFL))
    started = f"{place}/started"
    wait_until(lambda: os.path.exists(started) and
               read(started).count("\n") == 2, "the compiler was started")
    children = read(started).split()
    process.send_signal(number)
    _, said = process.communicate(timeout=300)
    check((process.returncode, said) == (-number, ""),
          f"fsdp-compile ends with {process.returncode} by {number}: {said}")
    wait_until(lambda: not any(map(processes.is_alive, children)),
               "the host compiler ended")
    check(sorted(os.listdir(place)) == ["compiler", "started", "tmp"] and
          not os.listdir(f"{place}/tmp"), "fsdp-compile leaves files behind")


def start_run(artifact, *options, signals=None):
    """A run that is not stopped by SIGINT, or with other signals' handlers."""
    signals = signals or {signal.SIGINT: signal.SIG_IGN}

    def prepare():
        for number, handler in signals.items():
            signal.signal(number, handler)

    return subprocess.Popen(
        ["fsdp-run", artifact, "--training.dataset_path", text,
         "--lr_scheduler.warmup_steps", "1", "--metrics.log_freq", "1",
         *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=prepare)


def check_stopped_run():
    """A run that is stopped leaves no folder without files; it is not stopped
    by a signal that it was told to ignore."""
    place = folder("stopped-run")
    succeed([*COMPILE, "-o", f"{place}/artifact"])
    process = start_run(f"{place}/artifact", "--training.steps", "1000000",
                        "--metrics.jsonl", "", "--job.dump_folder",
                        f"{place}/dump")
    wait_for_step(process)
    check(os.listdir(f"{place}/dump") == ["run.lock"],
          "fsdp-run does not lock its folder")
    process.send_signal(signal.SIGINT)
    for _ in range(5):
        check(process.stdout.readline().startswith("step:"),
              "SIGINT ends fsdp-run though it is ignored")
    process.terminate()
    process.communicate(timeout=300)
    check(process.returncode == 128 + signal.SIGTERM,
          "SIGTERM does not end fsdp-run")
    check(os.listdir(place) == ["artifact"], "fsdp-run leaves an empty folder")


def check_stops(artifact, ranks):
    """Whatever asks a run to end is told, and leaves no lock."""
    for number in (signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2,
                   signal.SIGXCPU, signal.SIGPIPE):
        place = folder(f"stop-{ranks}-{number}")
        if number == signal.SIGPIPE and ranks > 1:
            continue  # The launcher's own writes tell it.
        process = start_run(artifact, "-n", str(ranks), "--training.steps",
                            "1000000", "--job.dump_folder", f"{place}/run",
                            signals={number: signal.SIG_DFL})
        wait_for_step(process)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
        wanted = ("" if number == signal.SIGPIPE else "fsdp-run: stopped by "
                  f"signal {int(number)} ({signal.strsignal(number)}); the "
                  f"steps so far are in '{place}/run/metrics.jsonl'\n")
        check((process.returncode, said) == (128 + number, wanted),
              f"fsdp-run -n {ranks}: {process.returncode} by {number}: {said}")
        check(os.listdir(f"{place}/run") == ["metrics.jsonl"],
              f"signal {number} leaves {os.listdir(f'{place}/run')}")


def check_dump_in_new_folder(artifact, ranks):
    """A dump may go to the folder that the run makes."""
    place = folder(f"new-{ranks}")
    succeed(["fsdp-run", artifact, "-n", str(ranks), "--training.dataset_path",
             text, "--training.steps", "2", "--job.dump_folder",
             f"{place}/run", "--dump", f"{place}/run/state.safetensors"])
    check({f"state.rank{rank}.safetensors" for rank in range(ranks)} <=
          set(os.listdir(f"{place}/run")), "the dump is not in the new folder")


def check_full_of_a_checkpoint(artifact):
    """What does not fit into a buffer meets the full disk before the end."""
    saved = folder("saved")
    succeed(["fsdp-run", artifact, "--training.dataset_path", text,
             "--training.steps", "2", "--lr_scheduler.warmup_steps", "1",
             "--checkpoint.enable", "true", "--job.dump_folder", saved])
    check_full(["fsdp-checkpoint", "inspect", f"{saved}/checkpoint", "--json"],
               "fsdp-checkpoint: cannot write standard output")
    check_full(["fsdp-checkpoint", "--help"],
               "fsdp-checkpoint: cannot write standard output: No space left")


def check_name_that_is_no_text(artifact):
    """A folder's name may be any bytes; the picture is XML all the same."""
    place = folder("name")
    odd = os.fsdecode(os.fsencode(f"{place}/artifact-") + b"\xff<&")
    shutil.copytree(artifact, odd)
    subprocess.run(["fsdp-run", odd, "--training.dataset_path", text,
                    "--training.steps", "2", "--job.dump_folder",
                    f"{place}/run"], capture_output=True, check=True,
                   timeout=300)
    title = xml.etree.ElementTree.parse(f"{place}/run/loss.svg").getroot()[1]
    check(title.text.endswith("\\xff<&"), f"the title is {title.text}")


def size_of(entry):
    try:
        return entry.stat().st_size
    except FileNotFoundError:
        return 0


def check_stopped_dump():
    """A run that is stopped while it writes leaves no half-written file."""
    place = folder("stopped-dump")
    # Large enough to be seen while it is written.
    succeed([*COMPILE, "--model.dim=512", "--model.ffn_dim=2048", "-o",
             f"{place}/artifact"])
    os.mkdir(f"{place}/dump")
    partial = lambda: [entry for entry in os.scandir(f"{place}/dump")
                       if "partial" in entry.name]
    # An empty one only shows that the folder can be written to.
    is_writing = lambda: any(size_of(entry) > 0 for entry in partial())
    for _ in range(50):
        process = start_run(f"{place}/artifact", "--training.steps", "1",
                            "--job.dump_folder", f"{place}/run", "--dump",
                            f"{place}/dump/state.safetensors")
        while process.poll() is None and not is_writing():
            time.sleep(0.001)
        process.terminate()
        _, said = process.communicate(timeout=300)
        check(not partial(), "fsdp-run leaves a half-written file")
        if process.returncode == 128 + signal.SIGTERM:
            break
        check(process.returncode == 0,
              f"fsdp-run ends with {process.returncode}: {said}")
    check(process.returncode != 0, "SIGTERM never comes while a file is written")
    check(os.listdir(f"{place}/dump") in ([], ["state.rank0.safetensors"]),
          "fsdp-run leaves other files")


def main():
    shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work)
    graph = f"{work}/graph.mlir"
    succeed([*TRACE, "-o", graph])
    tools = {"trace": TRACE, "opt": ["fsdp-opt", graph],
             "compile": [*COMPILE, "--emit=cpp"]}
    for name, command in tools.items():
        check_targets(name, command, succeed(command))
        check_gone_reader(command)
        check_full(command, f"{command[0]}: error: cannot write standard "
                   "output: No space left on device\n")
        check_full([command[0], "--help"], f"{command[0]}: error: cannot write "
                   "standard output: No space left on device\n")
        check_limit(f"limit-{name}", command)
    check_object()
    check_full(["fsdp-run", "--help"], "fsdp-run: cannot write standard "
               "output: No space left on device\n")
    check_full([*COMPILE, "-o", f"{work}/artifact"], "fsdp-compile: error: "
               "cannot write standard output: No space left on device\n")
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGUSR2):
        check_stopped_compiler(number)
    check_stopped_run()
    check_stopped_dump()
    check_name_that_is_no_text(f"{work}/stopped-run/artifact")
    for ranks in (1, 2):
        artifact = f"{work}/artifact-{ranks}"
        succeed(["fsdp-compile", "--config", config, "--ranks", str(ranks),
                 "-o", artifact])
        check_gone_reader_of_a_run(artifact, ranks)
        check_full(["fsdp-run", artifact, "-n", str(ranks),
                    "--training.dataset_path", text, "--training.steps", "3",
                    "--lr_scheduler.warmup_steps", "1",
                    "--job.dump_folder", f"{work}/full-{ranks}"],
                   "fsdp-run: cannot write standard output: No space left on "
                   "device")
        check_stops(artifact, ranks)
        if ranks == 1:
            check_full_of_a_checkpoint(artifact)
        check_dump_in_new_folder(artifact, ranks)
    print(f"{checks} ways to write, all good")


main()
