"""Several sources of tokens by weights: the same losses on every mesh, in microbatches and
after a resumption on another mesh; a source alone is what it is without a mixture; what
cannot be mixed is refused.

usage: mixture.py GOLDEN WORKDIR"""
import json
import pathlib
import shutil
import sys

from support import runs, token_folders
from support.commands import expect, expect_near, only_line

GOLDEN, WORK = pathlib.Path(sys.argv[1]) / "tokens" / "folder", pathlib.Path(sys.argv[2])
STEPS = 24
SETTINGS = {"model__vocab_size": 300, "training__seq_len": 16, "training__dataset": "tokens",
            "optimizer__lr": 0.01, "training__global_batch_size": 4}
# Of one global batch of 4 rows: ranks, rows of each at a time, degree of tensor parallelism.
MESHES = {"one": (1, 4, 1), "microbatches": (2, 1, 1), "four": (4, 1, 1), "tensor": (2, 4, 2)}
NEAR = 2e-5  # sums of ranks are in another order


def write_half(name, first, last):
    """Documents `first` to `last` of the golden folder, all of whose ids are labels."""
    ids, starts = token_folders.read(GOLDEN)
    starts = [*starts, len(ids)]
    begin, end = starts[first], starts[last]
    return token_folders.write(GOLDEN, WORK / name, ids[begin:end],
                               [start - begin for start in starts[first:last]])


def artifact(mesh, **settings):
    ranks, rows, degree = MESHES[mesh]
    return runs.compile_small(
        str(WORK / ("-".join([mesh, *settings]))), ranks, **SETTINGS, **settings,
        training__local_batch_size=rows, parallelism__tensor_parallel_degree=degree)


def settings_of(mixture, **more):
    """Of a run; a mixture takes the place of the one path."""
    return {"training__dataset_path": None, "training__mixture": mixture,
            "training__steps": STEPS, "checkpoint__enable": "false", "validation__enable": "true",
            "validation__fraction": 0.1, **more}


def train(made, folder, mixture, **more):
    """(losses, what was said)."""
    said = made.run("", str(WORK / folder), **settings_of(mixture, **more))
    steps = runs.metric_runs(WORK / folder)[-1][1]
    return [step["loss"] for step in steps if "loss" in step], said


def compare_meshes(mixture):
    losses, first = {}, None
    for mesh in MESHES:
        losses[mesh], said = train(artifact(mesh), f"{mesh}-run", mixture)
        first = first or losses[mesh]
        expect_near(losses[mesh], first, mesh, NEAR)
        held_out = only_line(said, "held-out ids").split(":")[0]
    expect("folder '" in said and ": 3 of 4 rows, 50 documents, the last ones are held out" in said
           and ": 1 of 4 rows, 30 documents, the last ones are held out" in said, said)
    expect(first[-1] < 0.6 * first[0], f"nothing is learnt: {first}")
    return first, held_out


def compare_sources(mixed, held_out, halves):
    """A mixture of one is its source to the bit; both are evaluated."""
    made, counts = artifact("one"), []
    for half in halves:
        alone, said = train(made, f"alone-{half.name}", None, training__dataset_path=str(half))
        counts.append(int(only_line(said, "held-out ids").split("(")[1].split()[0]))
        expect(not sources_of(f"alone-{half.name}"), "sources of a run that has one")
        again, said = train(made, f"again-{half.name}", f"{half}=0.5")
        expect(again == alone and alone != mixed, f"{half}: {again} instead of {alone}")
    expect(f"({sum(counts)} labels predicted)" in held_out, f"{held_out}, not {counts}")
    sources = sources_of("one-run")
    expect([source["path"] for source in sources] == [str(half) for half in halves] and
           [source["predictions"] for source in sources] == counts, f"{sources}, not {counts}")
    other, _ = train(made, "other-run", f"{halves[0]}=1,{halves[1]}=1")
    expect(other != mixed, "weights change nothing")


def sources_of(folder):
    """What summary.json says of each source: what is held out of all is the mean of them."""
    summary = json.loads((WORK / folder / "summary.json").read_text())
    sources = summary.get("held_out_sources", [])
    if sources:
        nats = sum(source["predictions"] * source["nats_per_token"] for source in sources)
        mean = nats / sum(source["predictions"] for source in sources)
        expect(abs(mean - summary["held_out_nats_per_token"]) < 1e-9, f"{summary}")
        expect(sources[0]["nats_per_token"] != sources[1]["nats_per_token"], f"{summary}")
    return sources


def validate_sources(mixture):
    """A validation between steps tells them too, and one source after its name."""
    _, said = train(artifact("one"), "validated-run", mixture, validation__freq=8)
    lines = [json.loads(text)["validation"] for text in
             (WORK / "validated-run" / "metrics.jsonl").read_text().splitlines()
             if "validation" in text and "run" not in json.loads(text)]
    expect(len(lines) == 2, lines)
    for found in lines:
        expect([source["path"] for source in found["sources"]] ==
               [text.split("=")[0] for text in mixture.split(",")], lines)
    shown = [text for text in said.splitlines() if text.startswith("step:") and "held-out" in text]
    first = lines[0]["sources"][0]
    expect(f"nats per token: {first['path']} {first['nats_per_token']:.4f}, " in shown[0], said)


def keep_apart(mixture, together):
    masked = {"training__document_mask": "true"}
    first, _ = train(artifact("one", **masked), "apart-one", mixture, **masked)
    found, _ = train(artifact("microbatches", **masked), "apart-two", mixture, **masked)
    expect_near(found, first, "documents apart", NEAR)
    expect(first != together, "no mask")
    return 2


def resume_elsewhere(mixture, mixed, halves):
    saving = {"checkpoint__enable": "true", "checkpoint__interval": 10}
    train(artifact("microbatches"), "saved-run", mixture, **saving)
    for step in (20, STEPS):
        shutil.rmtree(WORK / "saved-run" / "checkpoint" / f"step-{step}")
    rest, _ = train(artifact("four"), "saved-run", mixture, **saving)
    expect_near(rest, mixed[10:], "resumed", NEAR)
    said = artifact("four").fail("", str(WORK / "saved-run"), **settings_of(
        f"{halves[0]}=2,{halves[1]}=1", **{**saving, "training__steps": STEPS + 1}))
    expect("the ids: as many bytes as in the checkpoint, but others" in said and
           "/chat=1'; the checkpoint's were in '" in said and "/prose=3, " in said, said)


def sample(mixture):
    _, said = train(artifact("one"), "sample-run", mixture, sample__length=5,
                    sample__prompt_ids="81,287,85")
    expect((WORK / "sample-run" / "sample.txt").stat().st_size > 0, said)


def refuse(halves):
    first, second = halves
    other = WORK / "other-tokenizer"
    shutil.copytree(second, other)
    description = json.loads((other / "tokens.json").read_text())
    description["tokenizer"]["xxh3"] = "0123456789abcdef"
    (other / "tokens.json").write_text(json.dumps(description))
    wrong = "training.mixture: expected PATH=WEIGHT"
    cases = [(f"{first}", {}, wrong), (f"{first}=0", {}, wrong), (f"{first}=1,{second}", {}, wrong),
             (f"{first}=1,{second}=1,{first}=2", {}, f"training.mixture names '{first}' twice"),
             (f"{first}=-1", {}, wrong), ("=1", {}, wrong),
             (f"{first}=100000,{second}=1", {}, "come out exactly after 100001 rows"),
             (f"{first}=1,{other}=1", {}, "was made by another tokenizer than"),
             (f"{first}=1,{WORK}/none=1", {}, "none"),
             (f"{first}=1", {"training__dataset_path": str(second)},
              "training.mixture and training.dataset_path are both set"),
             (f"{first}=1", {"training__dataset": "ids"},
              "training.mixture is for training.dataset = tokens, megatron or llmc"),
             (f"{first}=1", {"training__dataset": "megatron"}, "set training.dataset = tokens")]
    for mixture, more, wanted in cases:
        said = artifact("one").fail("", str(WORK / "refused"), **settings_of(mixture, **more))
        expect(wanted in said and said.count("\n") == 1, f"{mixture}, {more}: {said}")
        expect(not (WORK / "refused").exists(), f"{mixture} leaves a folder")
    return len(cases)


def main():
    halves = write_half("prose", 0, 50), write_half("chat", 50, 80)
    mixture = f"{halves[0]}=3,{halves[1]}=1"
    mixed, held_out = compare_meshes(mixture)
    compare_sources(mixed, held_out, halves)
    apart = keep_apart(mixture, mixed)
    resume_elsewhere(mixture, mixed, halves)
    validate_sources(mixture)
    sample(mixture)
    print(f"{len(MESHES)} meshes, documents apart on {apart}, resumed on another mesh, "
          f"{refuse(halves)} refused")


main()
