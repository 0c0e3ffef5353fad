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
    for name, stage in stages.items():
        print(f"== {name}", flush=True)
        result = _run(stage, there)
        found["stages"][name] = result
        found["on a stand-in"] = bool(there.device)
        _write(place, json.dumps(found, indent=1) + "\n")
        _write(os.path.join(args.folder, "report.md"), markdown(found))
        for row in result["rows"]:
            print("  " + "  ".join(_cell(key, row[key]) for key in row))
        print(f"== {name}: {result['status']}, {result['seconds']:.1f} s"
              + (f": {result['reason']}" if "reason" in result else ""), flush=True)
        status |= result["status"] == "failed"
    return int(status)


def _run(stage, there):
    begin, result = time.monotonic(), {"status": "passed", "rows": []}
    try:
        # Rows that came before a failure are kept.
        for row in stage(there):
            result["rows"].append(row)
        if not all(row.get("passed", True) for row in result["rows"]):
            result["status"] = "failed"
    except machine.Skipped as reason:
        result.update(status="skipped", reason=str(reason))
    except (machine.Failed, OSError, ValueError, KeyError) as reason:
        result.update(status="failed", reason=f"{type(reason).__name__}: {reason}"
                      if not isinstance(reason, machine.Failed) else str(reason))
    result["seconds"] = time.monotonic() - begin
    return result


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
