"""The command line of tools/gpu-report.sh."""
import argparse
import os
import sys

import bandwidth
import correctness
import prepare
import report
import speed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# In the order in which they run, what says most first. A stage takes a machine.Machine and gives
# rows; see report.py.
CORRECTNESS = {
    "versions": correctness.versions,
    "kernels": correctness.kernels,
    "train": correctness.train,
    "ranks": correctness.ranks,
    "attention": correctness.attention,
    "matmuls": correctness.matmuls,
    "ceilings": correctness.ceilings,
    "kill": correctness.kill,
    "fast": correctness.fast,
    "sanitizer": correctness.sanitizer,
}
SPEED = {
    "steps": speed.steps,
    "timeline": speed.timeline,
    "bandwidth": bandwidth.bandwidth,
}
STAGES = {**CORRECTNESS, **SPEED}
GROUPS = {"correctness": CORRECTNESS, "speed": SPEED, "all": STAGES}


def parsed():
    lines = [f"  {name:<12} {run.__doc__.splitlines()[0]}" for name, run in STAGES.items()]
    parser = argparse.ArgumentParser(
        prog="gpu-report.sh", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Checks and measures the CUDA target on a machine with a GPU.",
        epilog="stages:\n  prepare      programs, artifacts and what a CPU makes of them\n"
        + "\n".join(lines) + "\n  correctness  from versions to sanitizer\n"
        "  speed        from steps on\n  all          both\n\n"
        "Rows go to rows.jsonl in the folder as they come, and report.json and report.md are\n"
        "rewritten after each: a kill loses no row.")
    parser.add_argument("stages", nargs="+", metavar="STAGE",
                        choices=["prepare", *STAGES, *GROUPS])
    parser.add_argument("--folder", default=os.path.join(ROOT, "out", "gpu-report"),
                        help="of what is prepared and of the report (default: out/gpu-report)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"),
                        help="where prepare finds the programs (default: build)")
    parser.add_argument("--gpu", default="sm_90",
                        help="architecture that prepare compiles for (default: sm_90)")
    parser.add_argument("--small", action="store_true",
                        help="sizes for a stand-in of a GPU: says whether the stages work, "
                             "and nothing about speed")
    parser.add_argument("--device", metavar="COMMAND",
                        help="runs every program of a stage by this command, as the stand-in's "
                             "fsdp-fake-device")
    parser.add_argument("--limit", type=float, default=300, metavar="SECONDS",
                        help="that one program may take (default: 300)")
    parser.add_argument("--budget", type=float, default=0, metavar="SECONDS",
                        help="of this whole call: what it leaves no time for is skipped, which "
                             "the report says (default: no budget)")
    parser.add_argument("--model", action="append", default=[], metavar="NAME",
                        help="of steps, timeline and bandwidth, as '1B, 1 x 512'; several times for several "
                             "(default: all that prepare has made)")
    parser.add_argument("--torch", metavar="SCRIPT",
                        help="times PyTorch's step (default: torch_step.py beside this program)")
    parser.add_argument("--torch-limit", type=float, default=180, metavar="SECONDS",
                        help="that one mode of PyTorch may take, compilation included "
                             "(default: 180)")
    return parser.parse_args()


def main():
    args = parsed()
    names = [name for stage in args.stages
             for name in (GROUPS[stage] if stage in GROUPS else [stage])]
    if "prepare" in names:
        prepare.prepare(ROOT, args)
        names.remove("prepare")
    return report.run({name: STAGES[name] for name in names}, args) if names else 0


if __name__ == "__main__":
    sys.exit(main())
