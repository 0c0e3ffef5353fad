"""The memory that is planned is the memory that is used, and a step asks for
nothing more.

usage: memory.py CONFIG TEXT WORKDIR INTERPOSER

For some settings: the arena of the plan, of the manifest, of the report and of
the run are one number, and what the runtime maps is that arena. Then every
allocation of every thread is counted per library (count_allocations.cpp)."""
import json
import os
import re
import shutil
import sys

from support import commands, runs
from support.commands import expect

# What is ours; everything else that allocates is oneDNN, OpenMP or MPI.
OURS = ("libfsdp_runtime.so", "step.so", "fsdp-rank-cpu")
RANKS, STEPS, WARM = 2, 12, 3

# Two compute threads, so that workers of OpenMP are watched too, and both ways
# of communication.
VARIANTS = [
    (["--training.mixed_precision_param", "float32"],
     {"FSDP_SHARED_MEMORY": "1"}),
    (["--training.mixed_precision_param", "bfloat16", "--compile.threads", "2"],
     {"FSDP_SHARED_MEMORY": "0"}),
]


def group_of(library):
    if library.startswith("libdnnl"):
        return "oneDNN"
    return "OpenMP" if library.startswith("libgomp") else "MPI"


def planned_bytes(settings, artifact):
    """The arena that fsdp-compile states, in all its places."""
    compiled = commands.run("fsdp-compile", *settings, "--ranks", str(RANKS),
                            "-o", artifact)
    report = commands.run("fsdp-compile", *settings, "--ranks", str(RANKS),
                          "--emit=memory")
    with open(f"{artifact}/manifest.json") as file:
        manifest = json.load(file)
    planned = manifest["arena"]["bytes"]
    peaks = [program["arena_bytes"] for program in manifest["programs"]]
    expect(max(peaks) == planned, f"peaks {peaks}, but the arena is {planned}")
    stated = [int(number) for number in
              re.findall(r"(?:arena|peak) (\d+) bytes", compiled)]
    expect(stated == [planned] + peaks, f"{planned} bytes, but said:\n{compiled}")
    expect(str(planned) in report.replace(",", ""),
           f"{planned} bytes, but reported:\n{report}")
    return planned


def check_run(said, folder, planned, shared):
    """What was allocated, as the run says, and resident memory: exactly
    constant, but for 16 pages where MPI's pools may grow late (see below) and
    a second thread may reach deeper into its stack."""
    allocated = re.search(r"memory: ([\d,]+) bytes of arena", said).group(1)
    expect(int(allocated.replace(",", "")) == planned, said)
    lines = runs.metrics(folder)
    expect(len(lines) == STEPS, f"{len(lines)} steps in {folder}")
    expect({line["arena_bytes"] for line in lines} == {planned},
           f"{folder}: not all steps say {planned} bytes")
    resident = [line["resident_bytes"] for line in lines]
    spread = max(resident[WARM:]) - min(resident[WARM:])
    expect(spread <= (0 if shared else 16 * 4096),
           f"resident memory changes after step {WARM}: {resident}")
    return resident[-1]


def check_mappings(counts, planned, shared):
    """Our libraries map arenas of whole pages and, where fsdp-run has started the
    ranks, the board where they meet, nothing else."""
    pages = (planned + 4095) // 4096 * 4096 + (1 << 16)  # + control words
    arenas = RANKS if shared else 1
    boards = [RANKS << 16] if shared else []
    wanted = sorted([pages] * arenas + boards)
    mapped = sorted(size for library, size in counts["mappings"]
                    if library in OURS)
    expect(mapped == wanted, f"mapped {mapped}, not {wanted}")


def totals(window):
    """{group: (calls, bytes, largest)} of one window, without ours."""
    sums = {}
    for library, (calls, size, largest) in window.items():
        if library in OURS:
            continue
        old = sums.get(group_of(library), (0, 0, 0))
        sums[group_of(library)] = (old[0] + calls, old[1] + size,
                                   max(old[2], largest))
    return sums


def check_allocations(rank, runs, shared):
    """Rules per step, and the table of what the libraries took."""
    for step, run in enumerate(runs, 1):
        ours = {name: count for name, count in run["inside"].items()
                if name in OURS}
        expect(not ours, f"rank {rank}, step {step}: we allocate: {ours}")
        # Between steps the rank formats its lines, but the runtime is still.
        # The last step is followed by the end of the run.
        if 1 < step < len(runs):
            expect("libfsdp_runtime.so" not in run["after"],
                   f"rank {rank}, after step {step}: {run['after']}")
    for step, run in enumerate(runs, 1):
        text = "; ".join(
            f"{group} {calls} of {size} bytes (largest {largest})"
            for group, (calls, size, largest) in totals(run["inside"]).items())
        print(f"  rank {rank}, step {step}: ours 0; {text}; in "
              f"{run['executes']} executions of oneDNN's primitives")
    warm = [(run["executes"], totals(run["inside"])) for run in runs[WARM:]]
    expect(all(executes == warm[0][0] and sums["oneDNN"] == warm[0][1]["oneDNN"]
               for executes, sums in warm),
           f"oneDNN's allocations change after step {WARM}")
    expect(not any("OpenMP" in sums for _, sums in warm),
           f"OpenMP allocates after step {WARM}")
    # MPI keeps pools of requests and buffers, which grow when more messages
    # are on their way at once than ever before. That depends on timing, so a
    # few late growths are accepted; through shared memory there are none.
    late = sum(sums.get("MPI", (0, 0, 0))[0] for _, sums in warm)
    expect(late <= (0 if shared else 8),
           f"MPI allocates {late} times after step {WARM}")


def main():
    config, text, work, interposer = sys.argv[1:]
    shutil.rmtree(work, ignore_errors=True)
    for number, (options, environment) in enumerate(VARIANTS):
        folder = f"{work}/{number}"
        os.makedirs(folder)
        os.environ.update(environment)
        shared = environment["FSDP_SHARED_MEMORY"] == "1"
        settings = ["--config", config] + options
        planned = planned_bytes(settings, f"{folder}/artifact")
        ranks = str(RANKS)
        run = [*([] if shared else [*commands.MPIRUN, ranks]),
               "fsdp-run", f"{folder}/artifact", *settings,
               *(["-n", ranks] if shared else []),
               "--training.dataset_path", text, "--training.steps", str(STEPS),
               "--job.dump_folder", folder]
        resident = check_run(commands.run(*run), folder, planned, shared)
        print(f"{' '.join(options)}, {environment}: planned = allocated = "
              f"{planned} bytes, resident {resident} from step {WARM + 1} on")
        commands.run("env", f"LD_PRELOAD={interposer}",
                     f"FSDP_ALLOCATIONS={folder}/allocations", *run)
        for rank in range(RANKS):
            with open(f"{folder}/allocations.{rank}") as file:
                counts = json.load(file)
            expect(len(counts["runs"]) == STEPS, f"{len(counts['runs'])} runs")
            check_mappings(counts, planned, shared)
            check_allocations(rank, counts["runs"], shared)


main()
