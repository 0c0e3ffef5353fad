# embedding-rows.sh WORK RANKS OPTION...
# Trains with the table of an embedding and with its rows, and compares losses,
# norms and every rank's parameters and moments to the bit.
set -eu
work=$1 ranks=$2
shift 2
for rows in false true; do
  out=$work/$rows
  rm -rf "$out"* "$work/compiled" "$work/dump-$rows"*
  fsdp-compile "$@" --compile.embedding_rows $rows --ranks "$ranks" -o "$work/compiled"
  fsdp-compile "$@" --compile.embedding_rows $rows --ranks "$ranks" --emit=schedule -o "$out.mlir"
  fsdp-run "$work/compiled" "$@" --compile.embedding_rows $rows -n "$ranks" --job.dump_folder "$out" --dump "$work/dump-$rows"
  grep -o '"[a-z_]*_hex": *"[^"]*"' "$out/metrics.jsonl" > "$out.numbers"
done
grep -q 'nn.embedding %.*{absent' "$work/true.mlir"
grep -q 'nn.embedding_grad %.*{absent' "$work/true.mlir"
if grep absent "$work/false.mlir"; then exit 1; fi
test "$(wc -l < "$work/true.numbers")" -ge 12
cmp "$work/false.numbers" "$work/true.numbers"
for rank in $(seq 0 $((ranks - 1))); do
  cmp "$work/dump-false.rank$rank" "$work/dump-true.rank$rank"
done
