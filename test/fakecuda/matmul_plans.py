"""Two plans of one model, whose first runs find another algorithm fast.

    matmul_plans.py DEVICE FOLDER OPTIONS...

Trains fully_shard where the stand-in's other algorithms are fast, and replicate
where its first is: once with a cache folder that both share, once with one for
each. The algorithms differ in the last bit."""
import os
import shutil
import sys

from support import commands, fake_device, runs

FASTEST = {"fully_shard": "other", "replicate": "first"}
STEPS = 3


def trained(job, mode, cache):
    """The losses of a run, and the digest of its algorithms."""
    os.environ["FSDP_CACHE_DIR"] = cache
    result = job.on_device(mode, fastest=FASTEST[mode])
    commands.expect(result.status == 0, result.output)
    (header, _), = runs.metric_runs(os.path.join(result.folder, "out"))
    commands.expect(len(result.losses()) == STEPS, f"{mode}: {result.losses()}")
    return result.losses(), header["matmul_algorithms"]


def main():
    device, folder, *options = sys.argv[1:]
    jobs = {}
    for mode in FASTEST:
        place = os.path.join(folder, mode)
        fake_device.compile(place, [*options, "--compile.mode", mode])
        jobs[mode] = fake_device.Job(place, device, 2, [
            "--training.steps", str(STEPS), "--training.dataset", "bytes",
            "--training.dataset_path", os.path.abspath(__file__), "--validation.enable", "false",
            "--sample.length", "0", "--metrics.log_freq", "1"])
    for name, caches in (("one folder", ["cache"] * 2),
                         ("a folder for each", ["cache.0", "cache.1"])):
        for cache in caches:
            shutil.rmtree(os.path.join(folder, cache), ignore_errors=True)
        (losses, digest), (others, other) = (
            trained(jobs[mode], mode, os.path.join(folder, cache))
            for mode, cache in zip(FASTEST, caches))
        print(f"{name}: fully_shard {'=' if losses == others else '!='} replicate, "
              f"digests {'are equal' if digest == other else 'differ'}")


if __name__ == "__main__":
    main()
