#!/bin/sh
# The host compiler for a step program that is sanitized as the runtime is: by
# the same compiler, whose sanitizers the program has that loads it. Emitted
# code has GCC's pragmas.
exec "$FSDP_TEST_CXX" -fsanitize=address,undefined -fno-omit-frame-pointer \
  -Wno-unknown-pragmas -Wno-pass-failed "$@" -Wl,-z,undefs
