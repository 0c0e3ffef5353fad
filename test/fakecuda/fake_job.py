"""Runs of one artifact on the stand-in device, and of its twin on the CPU.

A folder holds what is compiled: cpu and cuda (artifacts), step.mlir (the
planned exec program of cuda) and twins.so."""
import glob
import json
import os
import shutil
import subprocess


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
        with open(os.path.join(self.folder, "out", "metrics.jsonl")) as lines:
            steps = [json.loads(line) for line in lines]
        return [(step["loss_hex"], step["grad_norm"]) for step in steps if "loss_hex" in step]

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
                              stderr=subprocess.STDOUT, text=True, errors="replace", timeout=300)
        return Result(place, done.returncode, done.stdout)

    def on_cpu(self):
        result = self._run("cpu", [], "cpu", {})
        if result.status != 0:
            raise SystemExit(f"the CPU's run fails:\n{result.output}")
        return result

    def on_device(self, name, **settings):
        """`settings` without their prefix, in small letters."""
        given = {f"FSDP_FAKECUDA_{key.upper()}": str(value) for key, value in settings.items()}
        given["FSDP_FAKECUDA_TWINS"] = os.path.join(self.folder, "twins.so")
        return self._run(name, [self.device], "cuda", given)


def same_bytes(result, reference):
    return (result.status == 0 and result.dumps() == reference.dumps()
            and result.losses() == reference.losses())
