"""Many orders of streams, each with the CPU's bytes.

    seeds.py FOLDER DEVICE RANKS COUNT ARGUMENTS...

Runs the artifact of FOLDER (see support/fake_device.py) with both fixed policies and the
seeds 1 to COUNT, or FSDP_FAKECUDA_SEEDS if it is set; ARGUMENTS are those of
fsdp-run."""
import concurrent.futures
import os
import sys

from support import fake_device


def main():
    folder, device, ranks, count = sys.argv[1:5]
    count = os.environ.get("FSDP_FAKECUDA_SEEDS", count)
    job = fake_device.Job(folder, device, int(ranks), sys.argv[5:])
    reference = job.on_cpu()
    orders = [{"policy": policy} for policy in ("compute-first", "communication-first")]
    orders += [{"seed": seed} for seed in range(1, int(count) + 1)]

    def run(order):
        name = "-".join(str(value) for value in order.values())
        result = job.on_device(name, **order)
        good = fake_device.same_bytes(result, reference)
        if good:
            result.remove()
        return good, order, result

    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count())) as pool:
        results = list(pool.map(run, orders))
    bad = [(order, result) for good, order, result in results if not good]
    for order, result in bad:
        print(f"{order}: other bytes than the CPU's; {result.folder}")
        print(result.output[-2000:] if result.status != 0 else "")
    print(f"{len(orders) - len(bad)} of {len(orders)} orders give the CPU's bytes")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
