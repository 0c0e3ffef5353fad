#!/bin/bash
# Runs all tests, from a fresh Debian 12 machine on: installs what is missing,
# builds everything, runs the units (ctest) and the lit tests; then builds the
# tools and the runtime's units with the address and undefined-behaviour
# sanitizers and runs these units and a part of the lit tests with them. Each
# section says how long it took; tests run even if others have failed.
#
#   tools/run-tests.sh [--no-sanitize | --all]
#
#   --no-sanitize   leaves out the sanitizers, half of the time
#   --all           runs the compiler's units with them too, ten minutes more
#
# The CUDA target is built and tested wherever the CUDA Toolkit, NCCL and cuDNN
# are, also in a folder that was configured without it; FSDP_BUILD_CUDA=OFF in
# the environment leaves it out. The last line says what became of it.
sanitize=1
all=0
for argument in "$@"; do
  case $argument in
    --no-sanitize) sanitize=0 ;;
    --all) all=1 ;;
    --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
    *) echo "$0: unknown argument '$argument'; see --help" >&2; exit 2 ;;
  esac
done
source "$(dirname "${BASH_SOURCE[0]}")/prepare.sh"
set +e # Sections fail one by one.

lit=/usr/lib/llvm-22/bin/lit
# One commit in ten is tested without the cache of artifacts (test/README.md).
commit=$(git -C "$root" rev-parse HEAD 2> /dev/null) && [ $((0x${commit:0:7} % 10)) = 0 ] && export FSDP_TEST_NO_CACHE=1
sanitized=$build-sanitize
# Every program of the project runs in these: each dialect, each pass, the
# command lines, bad input, and a step program that is sanitized itself.
sanitized_tests='dialects/|passes/|pipelines/|docs/examples|checkpoint/tool|fuzz/|e2e/(train|bad-input|sanitized-step)'

# section TITLE COMMAND...: a command with a heading and its time; its status.
status=0
section() {
  local title=$1 start=$SECONDS failed=0
  shift
  printf '\n== %s\n' "$title"
  "$@" || failed=1
  printf '== %s: %s, %d s\n' "$title" "$(verdict $failed)" $((SECONDS - start))
  status=$((status | failed))
  return $failed
}

verdict() {
  [ "$1" = 0 ] && echo passed || echo FAILED
}

build_all() {
  # A folder that the example configured has neither tests nor CUDA.
  configure -DFSDP_BUILD_TESTS=ON -DFSDP_BUILD_CUDA="${FSDP_BUILD_CUDA:-AUTO}" &&
    ninja -C "$build"
}

# What became of the CUDA target, as configure wrote it down.
cuda_state() {
  local reason
  reason=$(sed -n 's/^FSDP_CUDA_OFF_REASON:INTERNAL=//p' "$build/CMakeCache.txt")
  if [ -n "$reason" ]; then
    echo "not built, not tested: $reason"
  else
    echo "tested on a stand-in device"
  fi
}

# The longest steps of the build that is in a folder.
slowest_steps() {
  [ -f "$1/.ninja_log" ] || return
  echo "slowest steps:"
  awk -F'\t' '!/^#/ && !seen[$4]++ { printf "%7.1f s  %s\n", ($2 - $1) / 1000, $4 }' \
    "$1/.ninja_log" | sort -rn | head -n 8
}

build_sanitized() {
  cmake --preset sanitize -S "$root" -B "$sanitized" > "$sanitized.log" ||
    { cat "$sanitized.log"; return 1; }
  rm -f "$sanitized.log"
  local units=fsdp-unit-runtime
  [ $all = 1 ] && units=unit-tests
  ninja -C "$sanitized" fsdp-opt fsdp-trace fsdp-interpret fsdp-compile fsdp-run fsdp-checkpoint fuzzers $units
}

[ $sanitize = 1 ] && packages_to_test+=("${packages_to_sanitize[@]}")
section "packages" install_missing "${packages_to_build[@]}" \
  "${packages_to_test[@]}" "${packages_for_the_example[@]}" &&
  section "build" build_all || exit 1
slowest_steps "$build"
# Tests that wait hold no core.
section "units" ctest --test-dir "$build" --output-on-failure -j $((2 * $(nproc)))
section "lit tests" "$lit" -sv --time-tests -j $(($(nproc) + 1)) "$build/test"
if [ $sanitize = 1 ] && section "build with sanitizers" build_sanitized; then
  slowest_steps "$sanitized"
  # What takes long and adds no code: more ranks than cores wait for one
  # another, the interpreter's tests repeat what a few of them do, and a job
  # that is stopped has trained for seconds.
  left_out='*PassMeaning.*:*AccumulateMeaning.*:*FaultsAreFound*:Packing.TheDeepest*'
  left_out="$left_out:Run.AStoppedJobEndsItsRanks"
  units=(-R '^fsdp-unit-runtime')
  [ $all = 1 ] && units=(-E 'Collectives.ranks-[346]')
  section "units with sanitizers" env FSDP_RANDOM_PROGRAMS=20 GTEST_FILTER="-$left_out" \
    ctest --test-dir "$sanitized" --output-on-failure -j $((2 * $(nproc))) "${units[@]}"
  section "lit tests with sanitizers" \
    "$lit" -sv --time-tests -j $(($(nproc) + 1)) "$sanitized/test" --filter "$sanitized_tests"
fi
printf '\n== all: %s, %d s; CUDA target: %s\n' "$(verdict $status)" $SECONDS "$(cuda_state)"
exit $status
