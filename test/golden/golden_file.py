"""The form of every golden file."""

import json
import pathlib


def write(script, header, **lists):
    """Writes SCRIPT's .json: the header's values, then lists with one entry per
    line, so that differences can be read."""
    parts = [f'"{key}": {json.dumps(value)}' for key, value in header.items()]
    for name, entries in lists.items():
        lines = ",\n".join(json.dumps(entry, separators=(",", ":")) for entry in entries)
        parts.append(f'"{name}": [\n{lines}\n]')
    pathlib.Path(script).with_suffix(".json").write_text("{\n" + ",\n".join(parts) + "}\n")
