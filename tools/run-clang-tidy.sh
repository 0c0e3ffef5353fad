#!/bin/bash
# Checks the C++ sources of the whole tree: their format (clang-format) and the
# rules of .clang-tidy (clang-tidy). Installs what is missing and configures a
# build folder of its own, build-tidy, without the precompiled header, which
# clang-tidy cannot read; of the build it needs only the generated headers.
# What clang-tidy finds is printed once more at the end; any finding makes the
# script fail.
#
#   tools/run-clang-tidy.sh [--since COMMIT] [--jobs N]
#
#   --since COMMIT  only sources that differ from COMMIT and those that include
#                   a header that does
#   --jobs N        files at once; as many as there are cores if not given
#
# It is no part of run-tests.sh: the whole tree takes about ten minutes of one
# core. CUDA sources (.cu, .cuh) are checked for their format only: they are
# compiled by nvcc, whose command line clang-tidy does not read. So are sources
# that the build does not compile: what a test compiles itself.
since= jobs=$(nproc)
while [ $# -gt 0 ]; do
  case $1 in
    --since | --jobs)
      [ $# -ge 2 ] || { echo "$0: $1 needs a value; see --help" >&2; exit 2; }
      printf -v "${1#--}" '%s' "$2"
      shift 2 ;;
    --help) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit ;;
    *) echo "$0: unknown argument '$1'; see --help" >&2; exit 2 ;;
  esac
done
source "$(dirname "${BASH_SOURCE[0]}")/prepare.sh"
build=$build-tidy
cd "$root"

# The sources, new ones too.
in_tree() {
  git ls-files --cached --others --exclude-standard -- "${sources[@]}"
}

# The sources that differ from a commit and all that include one of them,
# directly or not. Headers go by their name alone: another of the same name
# costs time, no finding.
changed_since() {
  local files names more
  files=$(git diff --name-only --diff-filter=d "$1" -- "${sources[@]}"
    git ls-files --others --exclude-standard -- "${sources[@]}")
  while [ -n "$files" ]; do
    names=$(sed 's|.*/||' <<< "$files" | paste -sd'|')
    more=$({ echo "$files"
      git grep --untracked -lE "#include \"(.*/)?($names)\"" -- "${sources[@]}" ||
        true # nobody includes them
    } | sort -u)
    [ "$more" = "$files" ] && break
    files=$more
  done
  [ -z "$files" ] || echo "$files"
}

generate_headers() {
  configure -DFSDP_BUILD_TESTS=ON -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON
  ninja -C "$build" -t targets all |
    sed -n 's/^\(Fsdp[A-Za-z]*IncGen\): phony$/\1/p' |
    xargs ninja -C "$build" --quiet
}

# tidy FILE...: clang-tidy's findings, and each file's name and time.
tidy() {
  local folder
  folder=$(sed 's/[^A-Za-z0-9_/]/\\&/g' <<< "$root")
  # omp.h is among g++'s own headers, which come after all of clang's.
  run-clang-tidy-22 -quiet -p "$build" -j "$jobs" -warnings-as-errors='*' \
    -extra-arg="-idirafter$(g++ -print-file-name=include)" "${@/#/^$folder/}" |
    sed -uE 's/^(\[ *[0-9]+\/[0-9]+\]\[[0-9.]+s\]) .* /\1 /' | tee "$log"
}

sources=('*.cpp' '*.h' '*.cu' '*.cuh')
install_missing "${packages_to_build[@]}" "${packages_to_test[@]}" \
  clang-tidy-22 clang-format-22
if [ -n "$since" ]; then
  git rev-parse --quiet --verify "$since^{commit}" > /dev/null ||
    { echo "$0: no commit '$since'" >&2; exit 2; }
  list=$(changed_since "$since")
else
  list=$(in_tree)
fi
mapfile -t files < <(printf %s "$list")
compiled=()
for file in "${files[@]}"; do
  [[ $file = *.cpp ]] && compiled+=("$file")
done

status=0
[ ${#files[@]} -eq 0 ] || clang-format-22 --dry-run -Werror "${files[@]}" || status=1
if [ ${#compiled[@]} -gt 0 ]; then
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  generate_headers
  tidy "${compiled[@]}" || status=1
  findings=$(grep -E '^/.*: (warning|error): ' "$log" | sort -u || true)
  [ -z "$findings" ] || printf '\nall findings:\n%s\n' "$findings"
fi
[ $status = 0 ] && verdict=clean || verdict="NOT clean"
echo "${#files[@]} files, $SECONDS s: $verdict"
exit $status
