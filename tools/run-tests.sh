#!/bin/bash
# Runs all tests, from a fresh Debian 12 machine on: installs what is missing and
# builds twice, optimised (build) and with the address and undefined-behaviour
# sanitizers (build-sanitize). Each test runs in one of the two builds, a few in
# both: what compares bits, trains or needs the CUDA target in the optimised one,
# text, parsers and the host's units under the sanitizers. Each section says how
# long it took; tests run even if others have failed.
#
#   tools/run-tests.sh [--no-sanitize | --all | --list]
#
#   --no-sanitize   runs everything in the optimised build alone
#   --all           runs everything there, and all units and texts under the
#                   sanitizers too, half an hour more
#   --list          prints which build runs which test; needs a build
#
# The CUDA target is built and tested wherever the CUDA Toolkit, NCCL and cuDNN
# are, also in a folder that was configured without it; FSDP_BUILD_CUDA=OFF in
# the environment leaves it out. The last line says what became of it.
mode=${1:---default}
case $mode in
  --default | --no-sanitize | --all | --list) ;;
  --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
  *) echo "$0: unknown argument '$mode'; see --help" >&2; exit 2 ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/prepare.sh"
set +e # Sections fail one by one.

lit=/usr/lib/llvm-22/bin/lit
# One commit in ten is tested without the cache of artifacts (test/README.md).
commit=$(git -C "$root" rev-parse HEAD 2> /dev/null) && [ $((0x${commit:0:7} % 10)) = 0 ] && export FSDP_TEST_NO_CACHE=1
sanitized=$build-sanitize

# Which build runs a test, by its name in ctest and in lit. The optimised build
# runs all that are not of the sanitizers alone, so that none is lost. Texts of
# large models would take the sanitizers minutes.
units_of_sanitizers='^fsdp-unit-runtime\.'
units_of_both='^fsdp-unit-kernels\.'
tests_of_sanitizers='^fsdp :: (dialects/|fuzz/|docs/examples|checkpoint/tool'
tests_of_sanitizers+='|passes/(?!fsdp-overlap-motion|fsdp-plan\.)'
tests_of_sanitizers+='|pipelines/(?!compile-stages|decided-plan|loss-chunks|lsp-server|model-flops|recompute'
tests_of_sanitizers+='|sim-(?:calibrate|compare|explain)|tensor-parallel))'
tests_of_both='^fsdp :: e2e/(bad-input|sanitized-step|train)\.'

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

programs=(fsdp-opt fsdp-trace fsdp-interpret fsdp-compile fsdp-sim fsdp-run fsdp-checkpoint)

# build_optimised UNITS
build_optimised() {
  # A folder that the example configured has neither tests nor CUDA.
  configure -DFSDP_BUILD_TESTS=ON -DFSDP_BUILD_CUDA="${FSDP_BUILD_CUDA:-AUTO}" &&
    ninja -C "$build" "${programs[@]}" fsdp-lsp-server lit-programs "$1"
}

# build_sanitized UNITS...
build_sanitized() {
  cmake --preset sanitize -S "$root" -B "$sanitized" > "$sanitized.log" ||
    { cat "$sanitized.log"; return 1; }
  rm -f "$sanitized.log"
  ninja -C "$sanitized" "${programs[@]}" fuzzers "$@"
}

# Tests that wait hold no core.
# units FOLDER CTEST-OPTION...
units() {
  ctest --test-dir "$1" --output-on-failure -j $((2 * $(nproc))) "${@:2}"
}

# lit_tests FOLDER LIT-OPTION...
# Of a test that fails, lit says each command twice: as it stands in the test, and
# what it has executed.
lit_tests() {
  "$lit" -sv --time-tests -j $(($(nproc) + 1)) "$1/test" "${@:2}" 2>&1 |
    grep --line-buffered -v '^# executed command: '
  return "${PIPESTATUS[0]}"
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

# The names of all tests, one to a line.
all_names() {
  ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: //p'
  "$lit" --show-tests "$build/test" | sed -n 's/^  \(.* :: \)/\1/p'
}

if [ $mode = --list ]; then
  all_names | grep -vP "$units_of_sanitizers|$tests_of_sanitizers" | sed 's/^/optimised: /'
  all_names | grep -P "$units_of_sanitizers|$units_of_both|$tests_of_sanitizers|$tests_of_both" |
    sed 's/^/sanitized: /'
  exit
fi

[ $mode = --all ] && export FSDP_ALL_FAMILIES=1 # every case on every mesh
[ $mode = --no-sanitize ] || packages_to_test+=("${packages_to_sanitize[@]}")
section "packages" install_missing "${packages_to_build[@]}" \
  "${packages_to_test[@]}" "${packages_for_the_example[@]}" || exit 1
if [ $mode = --default ]; then
  section "build" build_optimised release-unit-tests || exit 1
  slowest_steps "$build"
  section "units" units "$build" -E "$units_of_sanitizers"
  section "lit tests" lit_tests "$build" --filter-out "$tests_of_sanitizers"
else
  section "build" build_optimised unit-tests || exit 1
  slowest_steps "$build"
  section "units" units "$build"
  section "lit tests" lit_tests "$build"
fi
if [ $mode = --default ] && section "build with sanitizers" build_sanitized fsdp-unit-runtime fsdp-unit-kernels; then
  slowest_steps "$sanitized"
  section "units with sanitizers" units "$sanitized" -R "$units_of_sanitizers|$units_of_both"
  section "lit tests with sanitizers" lit_tests "$sanitized" --filter "$tests_of_sanitizers|$tests_of_both"
fi
if [ $mode = --all ] && section "build with sanitizers" build_sanitized unit-tests; then
  slowest_steps "$sanitized"
  # More ranks than cores wait for one another, and the interpreter's tests repeat
  # what a few of them do.
  left_out='*PassMeaning.*:*AccumulateMeaning.*:*FaultsAreFound*:Packing.TheDeepest*'
  section "units with sanitizers" env FSDP_RANDOM_PROGRAMS=20 GTEST_FILTER="-$left_out" \
    units "$sanitized" -E 'Collectives.ranks-[346]'
  section "lit tests with sanitizers" lit_tests "$sanitized" \
    --filter "$tests_of_both|^fsdp :: (dialects|fuzz|passes|pipelines|docs/examples|checkpoint/tool)"
fi
printf '\n== all: %s, %d s; CUDA target: %s\n' "$(verdict $status)" $SECONDS "$(cuda_state)"
exit $status
