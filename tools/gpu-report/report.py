"""Runs stages, and writes what they found as JSON and as Markdown.

A stage gives rows: dictionaries with "name", what was measured under its unit,
and "passed" where there is something to pass."""
import json
import os
import time

import machine


def run(stages, args):
    """0 if no stage has failed."""
    place = os.path.join(args.folder, "report.json")
    found = _read(place)
    try:
        there = machine.Machine(args)
    except OSError as error:
        print(f"gpu-report.sh: {error}; 'gpu-report.sh prepare' makes the folder")
        return 2
    status = 0
    found["on a stand-in"] = bool(there.device)

    def keep():
        _write(place, json.dumps(found, indent=1) + "\n")
        _write(os.path.join(args.folder, "report.md"), markdown(found))
    for name, stage in stages.items():
        print(f"== {name}", flush=True)
        result = {"status": "ended early", "rows": [], "seconds": 0.0}
        for row in _rows(stage, there, result):
            found["stages"][name] = result
            _append(os.path.join(args.folder, "rows.jsonl"), {"stage": name, **row})
            keep()
            print("  " + "  ".join(_cell(key, row[key]) for key in row), flush=True)
        found["stages"][name] = result
        keep()
        print(f"== {name}: {result['status']}, {result['seconds']:.1f} s"
              + (f": {result['reason']}" if "reason" in result else ""), flush=True)
        status |= result["status"] == "failed"
    return int(status)


def _rows(stage, there, result):
    """The rows of a stage as they come; `result` always has what is known."""
    begin, passed = time.monotonic(), True
    try:
        for row in stage(there):
            result["rows"].append(row)
            result["seconds"] = time.monotonic() - begin
            passed &= row.get("passed", True)
            yield row
        result["status"] = "passed" if passed else "failed"
    except machine.OutOfTime:
        result.update(status="stopped" if result["rows"] else "skipped",
                      reason=f"the budget of {there.budget:g} s is used up")
        if not passed:
            result["status"] = "failed"
    except machine.Skipped as reason:
        result.update(status="skipped", reason=str(reason))
    except (machine.Failed, OSError, ValueError, KeyError) as reason:
        result.update(status="failed", reason=f"{type(reason).__name__}: {reason}"
                      if not isinstance(reason, machine.Failed) else str(reason))
    result["seconds"] = time.monotonic() - begin


def _append(place, row):
    """A row is a line, which a kill after it does not take away."""
    with open(place, "a") as file:
        file.write(json.dumps(row) + "\n")


def _read(place):
    try:
        with open(place) as file:
            return json.load(file)
    except FileNotFoundError:
        return {"stages": {}}


def _write(place, text):
    """Nobody sees half of it."""
    with open(place + ".tmp", "w") as file:
        file.write(text)
    os.replace(place + ".tmp", place)


def _cell(key, value):
    if key == "name":
        return str(value)
    if key == "passed":
        return "passed" if value else "FAILED"
    return f"{key} {_number(value)}"


def _number(value):
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def markdown(found):
    lines = []
    if found.get("on a stand-in"):
        lines += ["No GPU: this report is of a stand-in, its figures say nothing.", ""]
    for name, stage in found["stages"].items():
        lines += [f"## {name}: {stage['status']}", ""]
        if "reason" in stage:
            lines += ["```", stage["reason"], "```", ""]
        keys = list(dict.fromkeys(key for row in stage["rows"] for key in row))
        if keys:
            lines += ["| " + " | ".join(keys) + " |", "|" + "---|" * len(keys)]
            lines += ["| " + " | ".join(_number(row.get(key, "")) for key in keys) + " |"
                      for row in stage["rows"]]
            lines.append("")
    return "\n".join(lines)
