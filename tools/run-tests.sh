#!/bin/bash
# Runs all tests, from a fresh Debian 12 machine on: installs what is missing,
# builds everything, runs the units (ctest) and the lit tests. Both run even
# if the first fails.
source "$(dirname "${BASH_SOURCE[0]}")/prepare.sh"

install_missing "${packages_to_build[@]}" "${packages_to_test[@]}" \
  "${packages_for_the_example[@]}"
configure -DFSDP_BUILD_TESTS=ON
ninja -C "$build"

status=0
ctest --test-dir "$build" --output-on-failure || status=1
/usr/lib/llvm-22/bin/lit -sv "$build/test" || status=1
exit $status
