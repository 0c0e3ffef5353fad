#!/bin/sh
# compile-with.sh COMPILER... -- OTHER-COMPILER ARGUMENT...: compiles with the
# first instead of the other one (FSDP_HOST_CXX in CMakeLists.txt). COMPILER may
# have a launcher in front, such as ccache.
# The words of COMPILER go to the end, then the arguments after them.
words=0
while [ "$1" != -- ]; do
  set -- "$@" "$1"
  shift
  words=$((words + 1))
done
shift 2
arguments=$(($# - words))
while [ $arguments -gt 0 ]; do
  # Only what makes a precompiled header names it; clang would put a new one on top
  # of the old.
  case $1 in *.gch) rm -f "$1" ;; esac
  set -- "$@" "$1"
  shift
  arguments=$((arguments - 1))
done
exec "$@"
