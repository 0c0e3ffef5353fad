#!/bin/sh
# compile-with.sh COMPILER... -- OTHER-COMPILER ARGUMENT...: compiles with the
# first instead of the other one (FSDP_HOST_CXX in CMakeLists.txt). COMPILER may
# have a launcher in front, such as ccache.
compiler=
while [ "$1" != -- ]; do
  compiler="$compiler $1"
  shift
done
shift 2
# Only what makes a precompiled header names it; clang would put a new one on top
# of the old.
for argument; do
  case $argument in *.gch) rm -f "$argument" ;; esac
done
exec $compiler "$@"
