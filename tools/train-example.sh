#!/bin/bash
# Trains the example on two ranks, from a fresh Debian 12 machine on: installs
# what is missing, builds the compiler and the runner (neither tests nor CUDA),
# makes the text, compiles the model and trains. Arguments change settings of
# the run, for example: tools/train-example.sh --training.steps 100
source "$(dirname "${BASH_SOURCE[0]}")/prepare.sh"

install_missing "${packages_to_build[@]}" "${packages_for_the_example[@]}"
# A folder that is configured already, with or without tests, will do.
[ -f "$build/build.ninja" ] ||
  configure -DFSDP_BUILD_TESTS=OFF -DFSDP_BUILD_CUDA=OFF
ninja -C "$build" fsdp-compile fsdp-run

cd "$root"
mkdir -p out
if [ ! -f out/bible.txt ]; then
  bible -f gen1:1-rev22:21 > out/bible.txt.partial
  mv out/bible.txt.partial out/bible.txt
fi
"$build/bin/fsdp-compile" --config examples/bible.toml "$@" -o out/bible
exec "$build/bin/fsdp-run" out/bible --config examples/bible.toml "$@" -n 2
