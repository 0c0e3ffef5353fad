"""What goes wrong with a disk or with what is asked for: one message, and the
checkpoints so far stay whole.

usage: run_faults.py WORKDIR"""
import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys

from support import commands, jobs, runs
from support.commands import expect
from support.tensors import read_safetensors
from support.waiting import wait_until

RANKS = 2


def said_by(command, limit=None):
    """(status, output, errors) of a run whose files may have `limit` bytes."""
    def prepare():
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    return commands.finished(command, preexec_fn=prepare)


def check(name, command, pattern, fails, **options):
    status, said, errors = said_by(command, **options)
    expect((status != 0) == fails, f"{name}: status {status}\n{said}{errors}")
    expect(re.search(pattern, errors), f"{name}: says\n{errors}")
    messages = [line for line in errors.splitlines() if
                re.match("fsdp(?!-run: warning: )", line)]
    expect(len(messages) == 1 or not fails,
           f"{name}: more than one message\n{errors}")
    return said


def newest_is_whole(folder, step):
    saved, _ = runs.steps(folder)
    expect(saved and saved[-1] == step, f"{folder}: {saved}, not {step}")
    runs.verify(folder)


def last_is_lost(work, text, base, artifact):
    """Where a run that goes on without a save has no later one, it fails; what
    it has computed is there."""
    folder = f"{work}/last-lost"
    shutil.copytree(base, folder)
    with open(f"{folder}/checkpoint/step-6.partial", "w") as file:
        file.write("mine")
    command = artifact.command(text, folder, training__steps=6,
                               checkpoint__on_error="continue")
    check(folder, command, r"step-6.partial' is no directory; move it away; "
          r"(.|\n)*fsdp-run: .*step 6, the last one, is not saved", True)
    newest_is_whole(folder, 4)
    with open(f"{folder}/summary.json") as file:
        expect(json.load(file)["steps"] == 6, "no summary of all steps")
    with open(f"{folder}/checkpoint/step-6.partial") as file:
        expect(file.read() == "mine", "a file of somebody else is lost")
    os.remove(f"{folder}/checkpoint/step-6.partial")
    said = artifact.run(text, folder, training__steps=6)
    expect("step 6 saved" in said, said)


def names(work, text, base, artifact):
    """Steps under names that are not theirs, and that nobody can look at."""
    folder = f"{work}/names"
    shutil.copytree(base, folder)
    command = artifact.command(text, folder, training__steps=6)
    steps = f"{folder}/checkpoint"
    os.rename(f"{steps}/step-4", f"{steps}/step-100")
    check("another's name", command, r"step-100' is a checkpoint of step 4; "
          r"call it '.*/step-4', or move it out", True)
    os.symlink(f"{steps}/step-100", f"{steps}/step-4")
    os.rename(f"{steps}/step-100", f"{steps}/away")
    said = check("a link to nothing", command, r"cannot look at '.*step-4': it "
                 r"is a link to '.*step-100', which is not there", True)
    expect("step:" not in said, f"trains\n{said}")
    # What somebody has put into a step would be lost when it is saved again.
    os.remove(f"{steps}/step-4")
    os.rename(f"{steps}/away", f"{steps}/step-4")
    artifact.run(text, folder, training__steps=6)
    with open(f"{steps}/step-6/notes.txt", "w") as file:
        file.write("mine")
    again = artifact.command(text, folder, training__steps=6,
                             checkpoint__load_step=4)
    for _ in range(2):
        check("notes", again, r"the checkpoint of step 6 could not be saved: "
              r"'.*step-6' contains a file that is not part of a "
              r"checkpoint; move it away; .*step-4", True)
        expect(runs.steps(folder) == ([4, 6], []), f"{runs.steps(folder)}")
    os.remove(f"{steps}/step-6/notes.txt")
    said_by(again)
    newest_is_whole(folder, 6)


def disks(work, text, artifact):
    """Writing fails, after a checkpoint that is there."""
    base = f"{work}/large-base"
    artifact.run(text, base, training__steps=4)
    cases = 0
    for mode in ("async", "disabled"):
        for policy in ("stop", "continue"):
            settings = {"checkpoint__async_mode": mode,
                        "checkpoint__on_error": policy,
                        "checkpoint__interval": 4, "training__steps": 10}
            stops = policy == "stop"
            told = (r"the checkpoint of step 8 could not be saved: .*"
                    r"step-8.partial.*; the newest before it is .*step-4")
            # MPI needs files of 4104 KiB, and a rank's part has 5.7 MB.
            folder = f"{work}/limit-{mode}-{policy}"
            shutil.copytree(base, folder)
            # The last step cannot be saved either.
            check(folder, artifact.command(text, folder, **settings), told,
                  True, limit=4200 << 10)
            newest_is_whole(folder, 4)
            cases += 1
            if mode == "disabled":  # the folder is made before they differ
                continue
            # A file where the folder of the step is to be made.
            folder = f"{work}/taken-{mode}-{policy}"
            shutil.copytree(base, folder)
            os.makedirs(f"{folder}/checkpoint/step-8.partial/mine")
            check(folder, artifact.command(text, folder, **settings), told,
                  stops)
            newest_is_whole(folder, 4 if stops else 10)
            cases += 1
            if stops:  # what failed is tried again when there is room
                artifact.run(text, folder, training__steps=12)
                newest_is_whole(folder, 12)
    last_is_lost(work, text, base, artifact)
    names(work, text, base, artifact)
    return cases + 2


def vanished(work, text, artifact):
    """Somebody removes the folder of checkpoints under a run."""
    folder = f"{work}/vanished"
    job = jobs.Job(artifact.command(text, folder, **{
        **jobs.LONG, "checkpoint.interval": 20, "checkpoint.async_mode": "async"}), folder)
    job.wait_until(lambda: runs.steps(folder)[0], "a checkpoint")
    shutil.rmtree(f"{folder}/checkpoint", ignore_errors=True)
    # It is made again, or one save fails; either way the run can save later.
    wait_until(lambda: job.has_ended() or runs.steps(folder)[0], "another checkpoint")
    if not job.has_ended():
        job.process.send_signal(signal.SIGTERM)
    status, _, errors = job.end()
    expect(status == 0 or "could not be saved" in errors, errors)
    artifact.run(text, folder, training__steps=1)
    return 1


# Permissions mean nothing to root, unless it gives up what makes them so.
OVERRIDE = "-dac_override,-dac_read_search"
AS_USER = ["setpriv", f"--inh-caps={OVERRIDE}", f"--bounding-set={OVERRIDE}"
           ] if os.geteuid() == 0 else []


@contextlib.contextmanager
def read_only(folder):
    os.chmod(folder, 0o555)
    try:
        yield
    finally:
        os.chmod(folder, 0o755)


def prunes_read_only(folder):
    older = f"{folder}/step-3"
    shutil.copytree(f"{folder}/step-4", older)
    with read_only(folder):
        check("prune", AS_USER + ["fsdp-checkpoint", "prune", folder, "--keep",
                                  "1"],
              rf"cannot remove '{older}': Permission denied", True)
    shutil.rmtree(older)


def refuses_read_only(work, text, artifact):
    """A folder that is read-only before the run: no step is trained."""
    folder = f"{work}/read-only"
    artifact.run(text, folder, training__steps=4)
    command = artifact.command(text, folder, training__steps=10)
    with read_only(f"{folder}/checkpoint"):
        said = check("read-only", AS_USER + command,
                     r"cannot write '.*/checkpoint/step-1': Permission denied",
                     True)
    expect("step:" not in said, f"read-only: trains\n{said}")
    newest_is_whole(folder, 4)
    prunes_read_only(f"{folder}/checkpoint")
    # A file system that is read-only is so for root too.
    mounted = ["unshare", "-m", "sh", "-c", 'mount --bind "$0" "$0" && '
               'mount -o remount,bind,ro "$0" && "$@"', f"{folder}/checkpoint"]
    if subprocess.run(mounted + ["true"], capture_output=True).returncode == 0:
        check("mounted read-only", mounted + command,
              r"cannot write '.*/checkpoint/step-1': Read-only file system",
              True)


def becomes_read_only(work, text, artifact):
    """A folder becomes read-only under a run that goes on, and writable
    again."""
    folder, log = f"{work}/closed", f"{work}/closed.errors"
    command = AS_USER + artifact.command(text, folder, **{
        **jobs.LONG, "checkpoint.interval": 20, "checkpoint.on_error": "continue",
        "checkpoint.async_mode": "async"})

    def said():
        with open(log) as file:
            return file.read()

    failed = (r"the checkpoint of step \d+ could not be saved: .*Permission "
              r"denied; the newest before it is .*step-(\d+)")
    with open(log, "w") as errors:
        job = jobs.Job(command, folder, stdout=subprocess.DEVNULL, stderr=errors)

        def has_saved():
            expect(not job.has_ended(), f"closed: ended\n{said()}")
            return runs.steps(folder)[0]

        wait_until(has_saved, "a checkpoint")
        with read_only(f"{folder}/checkpoint"):
            wait_until(lambda: re.search(failed, said()), "a failure")
            step = int(re.search(failed, said()).group(1))
            newest_is_whole(folder, step)
        # What failed is tried again.
        wait_until(lambda: has_saved()[-1] > step, "another save")
        job.process.send_signal(signal.SIGTERM)
        status, *_ = job.end()
    messages = re.findall(r"^fsdp-run: (?!warning)", said(), re.M)
    expect(status == 0 and not messages, f"closed: {status}\n{said()}")
    expect(runs.steps(folder)[1] == [], f"closed: {runs.steps(folder)}")


def permissions(work, text, artifact):
    refuses_read_only(work, text, artifact)
    becomes_read_only(work, text, artifact)
    return 2


def other_text(text):
    """A text of the same size."""
    with open(text, "rb") as file:
        data = bytearray(file.read())
    data[100] ^= 1
    with open(f"{text}.other", "wb") as file:
        file.write(data)
    return f"{text}.other"


def requests(work, text, artifact):
    """What does not fit the checkpoint that is there."""
    base = f"{work}/base"
    artifact.run(text, base, training__steps=4)
    other = runs.compile_small(f"{work}/wider", RANKS, model__ffn_dim=64)
    plain = runs.compile_small(f"{work}/plain", RANKS,
                                  optimizer__name="none")
    only = {"checkpoint__load_only": "true", "training__steps": 4}
    data = "the order of the data would not be that of the checkpoint"
    cases = [
        ("model", other, {}, r"is of another model than the artifact: "
         r"ffn_dim is 48 instead of 64"),
        ("extra", plain, {}, r"'.*\.exp_avg' is not in the artifact(.|\n)*"
         r"exclude_from_loading=optimizer"),
        ("seed", artifact, {"training__seed": 7}, data + r" (.|\n)*"
         r"training.seed: 42 in the checkpoint, 7 now\n.*"
         r"--checkpoint.exclude_from_loading=dataloader"),
        ("text", artifact, {"training__dataset_path": other_text(text)},
         data + r".*\n  the text: as many bytes as in the checkpoint, but "
         r"others, in '.*/text.other'; the checkpoint's were in '.*/text'\n"),
        ("fraction", artifact, {"validation__fraction": 0.2}, data),
        ("step", artifact, {"checkpoint__load_step": 3},
         r"checkpoint.load_step = 3, but '.*' has those of steps 4; the same "
         r"command without checkpoint.load_step resumes from the newest"),
        ("train state", artifact,
         {"checkpoint__exclude_from_loading": "train_state"},
         r"counts steps from 1 again, but '.*' has checkpoints already: the "
         r"same command without checkpoint.exclude_from_loading resumes from "
         r"the newest"),
        ("moments", artifact,
         {"checkpoint__exclude_from_loading": "train_state",
          "checkpoint__folder": "none",
          "checkpoint__initial_load_model_only": "false",
          "checkpoint__initial_load_path": f"{base}/checkpoint"},
         r"the moments of '.*step-4' are those of step 4; .*"
         r"exclude_from_loading=train_state,optimizer"),
        ("cleaned first", artifact,
         {"checkpoint__load_step": 3, "checkpoint__load_only": "false"},
         r"checkpoint.load_step = 3, but '.*' has those of steps 4"),
        ("seed of a checkpoint", artifact,
         {"checkpoint__create_seed_checkpoint": "true",
          "checkpoint__load_only": "false",
          "checkpoint__initial_load_path": f"{base}/checkpoint"},
         r"create_seed_checkpoint = true saves initial values; leave out "
         r"checkpoint.initial_load_path"),
        ("nothing there", artifact,
         {"checkpoint__folder": "none",
          "checkpoint__initial_load_path": f"{work}/none"}, r"none'"),
    ]
    for name, which, settings, pattern in cases:
        command = which.command(text, base, **{**only, **settings})
        check(name, command, pattern, True)
    return len(cases)


def optimizer_step(artifact, text, folder, steps, **settings):
    """What the optimizer of the last step takes for its number."""
    artifact.run(text, folder, "--dump", f"{folder}.st", training__steps=steps,
                 **settings)
    dump = read_safetensors(f"{folder}.rank0.st")
    return int.from_bytes(dump["step"][1], "little")


def anew(work, text, artifact, base):
    """Moments that begin with zeros are corrected as those of a first step, in
    the runs after that too."""
    folder = f"{work}/anew"
    shutil.copytree(base, folder)
    expect(optimizer_step(artifact, text, folder, 6,
                          checkpoint__exclude_from_loading="optimizer") == 2,
           "the optimizer does not begin anew")
    expect(optimizer_step(artifact, text, folder, 7) == 3,
           "the optimizer's count is lost")
    # PyTorch's checkpoint has the count too, and no data.
    commands.run("fsdp-checkpoint", "convert", f"{folder}/checkpoint", "--to",
                 "dcp", f"{work}/torch")
    begin = {"checkpoint__initial_load_path": f"{work}/torch",
             "checkpoint__initial_load_model_only": "false"}
    check("torch", artifact.command(text, f"{work}/from-torch",
                                    training__steps=8, **begin),
          r"does not say which data its run had .*\n"
          r"--checkpoint.exclude_from_loading=dataloader", True)
    expect(optimizer_step(artifact, text, f"{work}/from-torch", 8,
                          checkpoint__exclude_from_loading="dataloader",
                          **begin) == 4,
           "the optimizer's count is lost on the way through PyTorch's")


def fitting(work, text, artifact):
    """What is asked for and fits."""
    base = f"{work}/base"
    plain = runs.SavingArtifact(f"{work}/plain", RANKS,
                                {**runs.SMALL, "optimizer.name": "none"}, runs.CONFIG)
    plain.run(text, base, training__steps=4, checkpoint__load_only="true",
              checkpoint__exclude_from_loading="optimizer")
    said = artifact.run(text, base, training__steps=4, training__seed=7,
                        checkpoint__load_only="true",
                        checkpoint__exclude_from_loading="dataloader,optimizer")
    expect("resumes after step 4" in said, said)
    anew(work, text, artifact, base)
    # Parameters alone begin with step 1.
    said = artifact.run(text, f"{work}/initial", training__steps=2,
                        checkpoint__initial_load_path=f"{base}/checkpoint")
    expect("starts from the parameters of" in said, said)
    expect(runs.steps(f"{work}/initial")[0] == [2], "steps of its own")
    # A seed is initial values: every mode starts from it, as without it.
    seed = f"{work}/seed"
    artifact.run(text, seed, checkpoint__create_seed_checkpoint="true")
    expect(runs.steps(seed)[0] == [0], "no seed")
    check("seed twice", artifact.command(
        text, seed, checkpoint__create_seed_checkpoint="true"),
        "already; choose another checkpoint.folder", True)
    for folder, enable in ((seed, "true"), (f"{work}/unseeded", "false")):
        artifact.run(text, folder, training__steps=3, training__seed=42,
                     checkpoint__enable=enable)
    expect(runs.curve(seed) == runs.curve(f"{work}/unseeded"),
           "a seed changes losses")
    # Two stay, and the last has parameters alone.
    last = f"{work}/last"
    artifact.run(text, last, training__steps=9, checkpoint__interval=2,
                 checkpoint__keep_latest_k=2,
                 checkpoint__last_save_model_only="true",
                 checkpoint__export_dtype="bfloat16",
                 checkpoint__enable_first_step_checkpoint="true")
    expect(runs.steps(last) == ([8, 9], []), f"{runs.steps(last)}")
    said = artifact.run(text, last, training__steps=9,
                        checkpoint__last_save_model_only="true")
    expect("all 9 steps are over" in said, said)
    check("model only", artifact.command(text, last, training__steps=12),
          r"'.*\.exp_avg', a state of the artifact, is not there", True)
    # Evaluation and samples take whatever has parameters.
    for step in (8, 9):
        said = commands.run(
            "fsdp-run", artifact.path, "evaluate", "-n", str(RANKS),
            "--checkpoint", f"{last}/checkpoint/step-{step}",
            f"--training.dataset_path={text}")
        expect("bits per byte" in said, said)
    said = commands.run(
        "fsdp-run", artifact.path, "sample", "-n", str(RANKS), "--checkpoint",
        f"{last}/checkpoint", f"--training.dataset_path={text}")
    expect("sample: 200 bytes" in said and "sample (temperature" in said, said)
    expect(not os.path.exists("outputs"), "a command leaves files")


def others(work, text, artifact):
    """Evaluation between steps changes nothing; bad steps are skipped."""
    curves = []
    for freq in (0, 3):
        folder = f"{work}/freq{freq}"
        said = artifact.run(text, folder, training__steps=7,
                            checkpoint__enable="false",
                            validation__freq=freq, validation__enable="true")
        curves.append(runs.curve(folder))
    expect(curves[0] == curves[1], "evaluation changes losses")
    expect(said.count("held-out text: ") == 2, said)
    with open(f"{folder}/metrics.jsonl") as file:
        expect(sum('"validation": {' in line for line in file) == 2,
               "two lines of metrics")
    # A validation that the run before has not come to is made up for, once.
    folder = f"{work}/validate"
    for steps, times in ((3, 0), (4, 1), (4, 0), (5, 0), (7, 1)):
        said = artifact.run(text, folder, training__steps=steps,
                            validation__freq=3, validation__enable="true")
        expect(said.count("held-out text: ") == times, f"{steps}: {said}")
    expect(runs.curve(folder) == curves[0], "validation changes losses")
    # Gradients of parameters so large are not finite from step 2 on.
    status, said, errors = said_by(artifact.command(
        text, f"{work}/skip", training__steps=9, optimizer__lr=1e30,
        lr_scheduler__warmup_steps=0, training__on_nonfinite="skip",
        training__max_skipped_steps=3))
    expect(status != 0 and errors.count("it was skipped") == 2 and
           re.search(r"is not finite and so were 2 steps before it .*; the run "
                     r"was stopped: ", errors), f"skip: {said}{errors}")
    # Metrics of such steps are JSON too.
    expect([step for step, *_ in runs.curve(f"{work}/skip")][:3] == [1, 2, 3],
           "skip: metrics")


def main():
    (work,) = sys.argv[1:]
    text = runs.start_in(work)
    os.chdir(work)
    artifact = runs.compile_small(f"{work}/artifact", RANKS)
    large = runs.compile_small(f"{work}/large", RANKS, model__dim=128,
                                  model__ffn_dim=1024, model__n_layers=2)
    faults = disks(work, text, large) + vanished(work, text, artifact)
    faults += permissions(work, text, artifact)
    refused = requests(work, text, artifact)
    fitting(work, text, artifact)
    others(work, text, artifact)
    print(f"{faults} faults of disks, {refused} requests refused")


main()
