#!/usr/bin/env python3
"""Makes rules of a plan of version 1, which lists units of parameters.

usage: convert-plan.py OLD.json > NEW.json

Every parameter's collectives go into the bucket of its unit, and settings that
units share are one rule about their buckets. fsdp-plan names a rule that
matches nothing in a model, as where no parameter of a unit is sharded: delete
that one."""
import json
import sys

# What a unit leaves unsaid.
DEFAULTS = {"bucket": True, "reshard_after_forward": True, "overlap": True,
            "forward_prefetch": 1, "backward_prefetch": 1, "reduce_defer": 1}
# A glob may stand for 1024 texts.
MOST_NAMES = 256


class Bad(Exception):
    """What is no plan of version 1."""


def escaped(name):
    return "".join("\\" + c if c in "*?[]{},\\" else c for c in name)


def globs(phases, names, roles):
    """Globs that match each name in each phase and role."""
    for begin in range(0, len(names), MOST_NAMES):
        part = [escaped(name) for name in names[begin:begin + MOST_NAMES]]
        text = part[0] if len(part) == 1 else "{" + ",".join(part) + "}"
        yield f"{phases} {text} {roles}"


def path_of(parameter):
    """What an address calls it: a weight after its module."""
    return parameter.removesuffix(".weight")


def checked(plan):
    if not isinstance(plan, dict) or plan.get("version") != 1:
        raise Bad("is no plan of version 1")
    units = plan.get("units")
    if not isinstance(units, list):
        raise Bad("has no array \"units\"")
    for index, unit in enumerate(units):
        place = f"units[{index}]"
        if not isinstance(unit, dict) or not isinstance(unit.get("name"), str):
            raise Bad(f"needs a name at {place}")
        names = unit.get("parameters")
        if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
            raise Bad(f"needs an array of names at {place}.parameters")
        for key, value in unit.items():
            if key in DEFAULTS and type(value) is not type(DEFAULTS[key]):
                raise Bad(f"has a value of another type at {place}.{key}")
            if key not in DEFAULTS and key not in ("name", "parameters"):
                raise Bad(f"has the unknown key '{key}' at {place}")
    return [DEFAULTS | unit for unit in units if unit["parameters"]]


def bucket_names(units):
    """The units' names, but without a star, which would stand for a block, and
    none that is what a parameter of another unit is called: a rule about the one
    would be about the other."""
    unit_of = {path_of(parameter): unit["name"]
               for unit in units for parameter in unit["parameters"]}
    names = {}
    for unit in units:
        name = unit["name"].replace("*", "")
        while unit_of.get(name, unit["name"]) != unit["name"]:
            name += " (unit)"
        names[unit["name"]] = name
    return names


def settings(units, names, key, phases, roles, choice):
    """A rule for each value. Each is also about the units of those after it,
    the last about most: so it matches something where that value does not."""
    groups = {}
    for unit in units:
        groups.setdefault(unit[key], []).append(unit)
    ordered = sorted(groups.items(),
                     key=lambda group: sum(len(unit["parameters"]) for unit in group[1]))
    for index, (value, _) in enumerate(ordered):
        buckets = [names[unit["name"]] for _, group in ordered[index:] for unit in group]
        yield {"match": list(globs(phases, buckets, roles)), choice: value}


def converted(plan):
    units = checked(plan)
    names = bucket_names(units)
    kinds = "{all_gather,reduce_scatter,all_reduce}"
    rules = []
    for unit in units:
        paths = [path_of(parameter) for parameter in unit["parameters"]]
        rules.append({"match": list(globs("*", paths, kinds + "*")),
                      "bucket": names[unit["name"]], "merge": unit["bucket"]})
    rules += settings(units, names, "overlap", "*", kinds, "overlap")
    rules += settings(units, names, "forward_prefetch", "fwd", "all_gather", "prefetch")
    rules += settings(units, names, "backward_prefetch", "{again,bwd}", "all_gather", "prefetch")
    rules += settings(units, names, "reduce_defer", "*", "{reduce_scatter,all_reduce}", "defer")
    rules += settings(units, names, "reshard_after_forward", "fwd", "all_gather", "recompute")
    return {"version": 2, "rules": rules}


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        sys.exit(__doc__)
    path = sys.argv[1]
    try:
        with open(path, encoding="utf-8") as file:
            result = converted(json.load(file))
    except (Bad, ValueError, OSError) as error:
        reason = error if isinstance(error, Bad) else f"cannot be read: {error}"
        sys.exit(f"convert-plan.py: error: '{path}' {reason}")
    print(json.dumps(result, indent=2))


main()
