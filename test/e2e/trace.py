"""Whether a trace of the tiny model marks its steps, and says of every matmul in
them which operation of which layer it is.

    trace.py TRACE STEPS"""
import collections
import json
import re
import sys

from support.commands import expect

STEPS_TRACK = 4


def main():
    with open(sys.argv[1]) as file:
        spans = [e for e in json.load(file)["traceEvents"] if e["ph"] == "X"]
    steps = [s for s in spans if s["tid"] == STEPS_TRACK and s["name"].startswith("step ")]
    names = [f"step {i + 1}" for i in range(int(sys.argv[2]))]
    expect([s["name"] for s in steps] == names, f"the trace marks {steps}")
    for step in steps:
        begin, end = step["ts"], step["ts"] + step["dur"]
        inside = [s for s in spans if begin <= s["ts"] and s["ts"] + s["dur"] <= end + 0.002]
        expect(any(s["name"] == "train" and s["tid"] == STEPS_TRACK for s in inside),
               f"{step['name']} has no program")
        matmuls = [s["args"] for s in inside if s["name"].startswith("gemm ")]
        addresses = collections.Counter(m.get("address") for m in matmuls)
        expect(len(addresses) == len(matmuls) > 0,
               f"addresses of matmuls in {step['name']}: {addresses}")
        for args in matmuls:
            expect(re.fullmatch(r"(fwd|bwd) \S+ (linear|dx|dw)", args["address"]),
                   f"a matmul is of {args}")
            layer = re.match(r"\w+ (layers\.\d+|\w+)", args["address"]).group(1)
            expect(args["layer"] == layer, f"a matmul is of {args}")


if __name__ == "__main__":
    main()
