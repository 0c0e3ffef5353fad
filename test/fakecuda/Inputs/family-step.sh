# One step of a model of transformers on two ranks, without cuDNN: the stand-in
# device leaves the CPU's bytes, by the calls of exec.
#
# usage: family-step.sh SOURCE BUILD WORK CASE SETTING...
source=$1 build=$2 work=$3/$4 folder=$1/test/golden/hf_families/$4
shift 4
set -e
mkdir -p "$work"
python3 - "$folder" "$work" "$*" << 'EOF'
import json, sys
from support.tensors import write_rows_of_ranks
with open(f"{sys.argv[1]}/golden.json") as file:
    rows = json.load(file)["rows"]
# Ranks of a tensor axis have the same rows.
write_rows_of_ranks(f"{sys.argv[2]}/rows", rows * 2 if "tensor_parallel" in sys.argv[3] else rows, 2)
EOF
model="--model.hf_assets_path $folder --training.seq_len 20 --compile.threads 1
  --compile.attention plain $*"
run="-n 2 --training.dataset_path $folder/golden.json --training.steps 1 --lr_scheduler.warmup_steps 0
  --validation.enable false --sample.length 0 --metrics.peak_tflops 1 --load $work/rows.safetensors
  --checkpoint.enable true --checkpoint.load_only true --checkpoint.initial_load_path $folder"
fsdp-compile $model --ranks 2 -o "$work/cpu"
fsdp-compile $model --ranks 2 --target=cuda -o "$work/cuda"
fsdp-compile $model --ranks 2 --target=cuda --emit=cuda -o "$work/step.cu"
fsdp-compile $model --ranks 2 --target=cuda --emit=mlir -o "$work/step.mlir"
sh "$source/test/fakecuda/host-builds/make-step-host-build.sh" "$work/step.cu" "$work/host-builds.so" "$source"
fsdp-run "$work/cpu" $model $run --job.dump_folder "$work/out-cpu" --dump "$work/dump-cpu"
env FSDP_FAKECUDA_TWINS="$work/host-builds.so" FSDP_FAKECUDA_TRACE="$work/trace" \
  "$build/test/fakecuda/fsdp-fake-device" fsdp-run "$work/cuda" $model $run --job.dump_folder "$work/out" --dump "$work/dump"
cmp "$work/dump-cpu.rank0" "$work/dump.rank0"
cmp "$work/dump-cpu.rank1" "$work/dump.rank1"
python3 "$source/test/fakecuda/compare_trace.py" "$work/step.mlir" "$work/trace" 2 '[train]'
