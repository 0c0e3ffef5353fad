# prepare.sh: sourced by train-example.sh, run-tests.sh and run-clang-tidy.sh.
# Makes a Debian 12 machine ready and builds; whatever is there already is left
# alone.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${FSDP_BUILD_DIR:-$root/build}

# LLVM and MLIR 22 are in bookworm's security suite, which Debian's default
# sources include.
packages_to_build=(
  g++ cmake ninja-build
  libmlir-22-dev mlir-22-tools llvm-22-dev llvm-22-tools
  libdnnl-dev libopenmpi-dev openmpi-bin
  libtomlplusplus-dev nlohmann-json3-dev libcli11-dev zlib1g-dev libxxhash-dev
  clang-22
)
packages_for_the_example=(bible-kjv)
packages_to_test=(libgtest-dev)
packages_to_sanitize=(libclang-rt-22-dev libomp-22-dev lld-22)

# install_missing PACKAGE...
install_missing() {
  local missing=() package
  for package in "$@"; do
    dpkg-query -W -f='${db:Status-Status}\n' "$package" 2>/dev/null |
      grep -qx installed || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return
  echo "installing: ${missing[*]}"
  local as_root=()
  [ "$(id -u)" -eq 0 ] || as_root=(sudo)
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# configure CMAKE-OPTION...
# clang compiles the compiler in half of g++'s time; FSDP_HOST_CXX= in the
# environment leaves everything to g++.
configure() {
  cmake -G Ninja -S "$root" -B "$build" -DFSDP_FAST_BUILD=ON \
    -DFSDP_HOST_CXX="${FSDP_HOST_CXX-clang++-22}" "$@" > "$build.log" ||
    { cat "$build.log"; return 1; }
  rm -f "$build.log"
}
