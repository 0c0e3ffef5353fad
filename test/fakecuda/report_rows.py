"""What a report keeps that is stopped in the middle.

    report_rows.py FOLDER COMMAND...

COMMAND is gpu-report.sh with the options of a prepared FOLDER. PyTorch's modes
sleep here. Rows of a run that is killed, or that has too short a budget, are in
rows.jsonl and report.json, both whole."""
import json
import os
import signal
import subprocess
import sys

from support.commands import expect
from support.waiting import wait_until


def rows(folder):
    with open(os.path.join(folder, "rows.jsonl")) as lines:
        return [json.loads(line) for line in lines]


def report(folder):
    with open(os.path.join(folder, "report.json")) as file:
        return json.load(file)["stages"]


def clear(folder):
    for name in ("rows.jsonl", "report.json"):
        if os.path.exists(os.path.join(folder, name)):
            os.remove(os.path.join(folder, name))


def sleeping_torch(folder, command):
    """A mode that does not end costs its limit, and no row of ours."""
    clear(folder)
    script = os.path.join(folder, "sleep.py")
    with open(script, "w") as file:
        file.write("import sys, time\n"
                   "if sys.argv[2] == 'default': time.sleep(3600)\n"
                   "print('{\"seconds\": 1, \"seconds_unsynced\": 0.5, \"bytes\": 1e9}')\n")
    subprocess.run([*command, "--torch", script, "--torch-limit", "2", "steps"], check=True)
    found = {row["name"]: row for row in rows(folder)}
    expect("ms" in found["tiny: fsdp"] and "ms" in found["tiny: fsdp --no-graph"], found)
    expect("did not end within 2 s" in found["tiny: torch default"]["error"], found)
    expect(found["tiny: torch max-autotune"]["ms"] == 1000, found)
    expect(report(folder)["steps"]["status"] == "passed", report(folder))
    print(f"a sleeping mode: {len(found)} rows")


def short_budget(folder, command):
    """A mode sleeps until the budget is used up; the stage after it is skipped."""
    clear(folder)
    script = os.path.join(folder, "sleep.py")
    with open(script, "w") as file:
        file.write("import time\ntime.sleep(3600)\n")
    subprocess.run([*command, "--torch", script, "--budget", "12", "steps", "timeline"],
                   check=True)
    stages = report(folder)
    # A slow machine comes less far.
    names = [row["name"] for row in stages["steps"]["rows"]]
    expect(names == ["tiny: fsdp", "tiny: fsdp --no-graph"][:len(names)], stages)
    expect(stages["steps"]["status"] == ("stopped" if names else "skipped"), stages)
    expect(stages["timeline"]["status"] == "skipped", stages)
    expect("the budget of 12 s" in stages["timeline"]["reason"], stages)
    print("a short budget: its rows are kept, the rest is skipped")


def killed(folder, command):
    clear(folder)
    process = subprocess.Popen([*command, "kernels"], stdout=subprocess.DEVNULL,
                               start_new_session=True)
    place = os.path.join(folder, "report.json")
    wait_until(lambda: os.path.exists(place) and len(report(folder)["kernels"]["rows"]) >= 2,
             "two rows")
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    stage = report(folder)["kernels"]
    expect(stage["status"] == "ended early", stage)
    # A row is in the list before it is in the report.
    expect([row["name"] for row in rows(folder)][:len(stage["rows"])]
           == [row["name"] for row in stage["rows"]], (rows(folder), stage))
    print("a kill: the rows so far are there")


def main():
    folder, *command = sys.argv[1:]
    sleeping_torch(folder, command)
    short_budget(folder, command)
    killed(folder, command)


if __name__ == "__main__":
    main()
