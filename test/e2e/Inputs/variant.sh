#!/bin/bash
# variant.sh FOLDER RANKS SETTING...: compiles the tiny model with these
# settings, trains it for 20 steps and leaves everything in FOLDER. With
# FSDP_SHARED_MEMORY=0 mpirun starts the ranks.
set -euo pipefail
folder=$1 ranks=$2
inputs=$(dirname "$0")
settings=(--config "$inputs/tiny.toml" --training.steps 20 --optimizer.lr 1e-2
  --metrics.log_freq 1 "${@:3}")
mkdir -p "$folder"
python3 "$inputs/text.py" > "$folder/text"
PYTHONPATH="$inputs/../.." python3 -m support.cache fsdp-compile "${settings[@]}" --ranks "$ranks" -o "$folder/artifact" > "$folder/compile.log"
launcher=() own=(-n "$ranks")
if [[ ${FSDP_SHARED_MEMORY:-1} == 0 ]]; then
  launcher=(mpirun --allow-run-as-root --oversubscribe --bind-to none "${own[@]}") own=()
fi
"${launcher[@]}" fsdp-run "$folder/artifact" "${settings[@]}" "${own[@]}" --training.dataset_path "$folder/text" --job.dump_folder "$folder"
