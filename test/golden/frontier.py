"""The least recompute time of Llama 3 8B in budgets of memory, by HiGHS.

`frontier.json` holds the chain of blocks (fsdp/Schedule/Frontier.h) of one
sequence of 8192 tokens on each of 8 H100s: bytes and picoseconds of each option.
This solves it as a mixed-integer program and writes the least times beside it.
"""

import json
import pathlib

import golden_file
import highspy

GIB = 2**30
# At some others, as 34 and 42, branching does not end in minutes.
BUDGETS = [21, 22, 23, 24, 25, 26, 27.5, 29, 30, 31, 32.5, 35, 37.5, 39, 40]


def solve(chain, budget):
    """Picoseconds, of all blocks together beyond their fastest options."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("mip_rel_gap", 0.0)
    model.setOptionValue("mip_abs_gap", 0.02)
    model.setOptionValue("time_limit", 120.0)
    room = (budget * GIB - chain["persistent"]) / GIB
    if chain["fixed"] / GIB > room:
        return None
    options = {}
    for kind, keep, work, time in chain["options"]:
        options.setdefault(kind, []).append((keep / GIB, work / GIB, time / 1e9))
    least = {kind: min(time for _, _, time in all) for kind, all in options.items()}
    kept, cost = [], []
    for kind, beside in zip(chain["class_of"], chain["beside"]):
        chosen = [model.addBinary() for _ in options[kind]]
        model.addConstr(sum(chosen) == 1)
        work = [(work + beside / GIB) * x for (_, work, _), x in zip(options[kind], chosen)]
        model.addConstr(sum(kept + work) <= room)
        kept += [keep * x for (keep, _, _), x in zip(options[kind], chosen)]
        cost += [(time - least[kind]) * x for (_, _, time), x in zip(options[kind], chosen)]
    model.addConstr(sum(kept) + chain["loss"] / GIB <= room)
    model.minimize(sum(cost))
    info = model.getInfo()
    status = model.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return None
    assert status == highspy.HighsModelStatus.kOptimal, (budget, status, info.mip_gap)
    return info.objective_function_value


def main():
    path = pathlib.Path(__file__).with_suffix(".json")
    chain = json.loads(path.read_text())
    found = []
    for budget in BUDGETS:
        milliseconds = solve(chain, budget)
        print(budget, milliseconds, flush=True)
        found.append([budget, None if milliseconds is None else round(milliseconds, 4)])
    keys = ["persistent", "loss", "fixed", "class_of", "beside"]
    golden_file.write(__file__, {key: chain[key] for key in keys}, options=chain["options"], least=found)


if __name__ == "__main__":
    main()
