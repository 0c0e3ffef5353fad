#!/bin/bash
# Fine-tunes a small Llama on games of chess, from a fresh Debian 12 machine on: installs
# what is missing, has an engine play, trains a tokenizer, tokenizes, trains on two ranks,
# counts legal moves before and after, and exports a directory for transformers. All
# files are in out/chess; a step whose files are there is left out. Arguments change
# settings of the run, for example: examples/chess/chess.sh --training.steps 100
source "$(dirname "${BASH_SOURCE[0]}")/../../tools/prepare.sh"
cd "$root"
here=examples/chess work=out/chess ranks=2 games=6000 judged=40

install_missing "${packages_to_build[@]}" stockfish python3-venv
[ -f "$build/build.ninja" ] || configure -DFSDP_BUILD_TESTS=OFF -DFSDP_BUILD_CUDA=OFF
ninja -C "$build" fsdp-compile fsdp-run fsdp-checkpoint
PATH=$build/bin:$PATH
mkdir -p $work
python=$work/venv/bin/python
[ -x $python ] || python3 -m venv $work/venv
$python -m pip install -q -r tools/tokenize-requirements.txt

[ -f $work/games.jsonl ] || $python $here/games.py $games 1 $work/games.jsonl
[ -f $work/judged.jsonl ] || $python $here/games.py $judged 2 $work/judged.jsonl
[ -f $work/base/config.json ] || $python $here/model.py $work/games.jsonl $work/base
[ -d $work/tokens ] ||
  $python tools/fsdp-tokenize --tokenizer $work/base -o $work/tokens $work/games.jsonl

run="--config $here/chess.toml $*"
fsdp-compile $run --ranks $ranks -o $work/artifact
if [ ! -f $work/base/model.safetensors ]; then
  # The initial values, as a directory that a fine-tune begins with.
  fsdp-run $work/artifact $run -n $ranks --job.dump_folder $work/seed \
    --checkpoint.initial_load_path= --checkpoint.create_seed_checkpoint true
  fsdp-checkpoint export $work/seed/checkpoint $work/base.partial --assets $work/base
  mv $work/base.partial/model.safetensors $work/base/
  rm -r $work/base.partial
fi

# judge CHECKPOINT
judge() {
  $python $here/evaluate.py fsdp-run $work/artifact "$1" $work/judged.jsonl \
    $work/base/tokenizer.json $judged $run -n $ranks
}
echo "before: $(judge $work/base)"
fsdp-run $work/artifact $run -n $ranks
echo "after: $(judge $work/run/checkpoint)"
rm -rf $work/chess-llama
fsdp-checkpoint export $work/run/checkpoint $work/chess-llama --assets $work/base
