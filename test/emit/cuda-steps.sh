#!/bin/sh
# Compiles training steps (bf16, 8 ranks) for a GPU, without a warning, and
# looks at their machine code:
#
#   cuda-steps.sh FOLDER SOURCE_DIR GPU FLAVOR...
#
# The tests take some of them; all are
#
#   for gpu in sm_80 sm_90 sm_100; do
#     sh test/emit/cuda-steps.sh /tmp/steps . $gpu debugmodel 1B 8B
#   done
set -e
folder=$1 source=$2 gpu=$3
shift 3
mkdir -p "$folder"
for flavor; do
  step="$folder/$flavor-$gpu"
  settings="--model.flavor $flavor --training.mixed_precision_param bfloat16
    --training.local_batch_size 1 --training.seq_len 512 --ranks 8 --target=cuda --gpu $gpu"
  # One compilation gives the artifact and what nvcc and ptxas say of it.
  mkdir -p "$step.kept"
  cat > "$step.nvcc" << END
#!/bin/sh
nvcc -Xptxas -v --keep --keep-dir "$step.kept" "\$@" 2> "$step.said"
status=\$?
cat "$step.said" >&2
exit \$status
END
  chmod +x "$step.nvcc"
  fsdp-compile $settings --cxx "$step.nvcc" -o "$step"
  if grep warning "$step.said"; then
    echo "$flavor, $gpu: nvcc warns"
    exit 1
  fi
  fsdp-compile $settings --emit=cuda -o "$step.cu"
  python3 "$source/test/emit/cuda_machine_code.py" --gpu "$gpu" --compiled "$step.said" "$step.kept" "$step.cu"
done
