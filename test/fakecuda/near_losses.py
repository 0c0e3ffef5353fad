"""Whether two runs have nearly the same losses and gradient norms.

    near_losses.py TOLERANCE METRICS METRICS

The tolerance is relative."""
import json
import sys


def steps(name):
    with open(name) as file:
        lines = [json.loads(line) for line in file]
    return [(line["loss"], line["grad_norm"]) for line in lines if "loss_hex" in line]


def main():
    limit = float(sys.argv[1])
    left, right = (steps(name) for name in sys.argv[2:])
    if not left or len(left) != len(right):
        sys.exit(f"{len(left)} and {len(right)} steps")
    far = max(abs(a - b) / abs(a) for one, other in zip(left, right) for a, b in zip(one, other))
    if far > limit:
        sys.exit(f"losses or norms differ by {far}")
    print(f"{len(left)} steps, at most {far:.1e} apart")


if __name__ == "__main__":
    main()
