#!/usr/bin/env python3
"""Counts the matmuls of a problem's text that a machine file has no rate for.

    measured_shapes.py PROBLEM MACHINE.toml
"""
import sys
import tomllib


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        maths = [line.split()[1:] for line in file if line.startswith("math product")]
    with open(sys.argv[2], "rb") as file:
        machine = tomllib.load(file)
    known = {(product["type"], product["layout"], *map(int, rate[:3]))
             for product in machine["product"] for rate in product["rates"]}
    missing = 0
    for _, dtype, _, m, n, k, *transposed in maths:
        layout = "".join("t" if side in transposed else "n" for side in ("lhs", "rhs"))
        missing += (dtype, layout, int(m), int(n), int(k)) not in known
    print(f"{len(maths)} shapes, {missing} without a rate")


if __name__ == "__main__":
    main()
