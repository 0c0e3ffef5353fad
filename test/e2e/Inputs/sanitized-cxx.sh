#!/bin/sh
# The host compiler for a step program that is sanitized as the runtime is.
exec c++ -fsanitize=address,undefined -fno-omit-frame-pointer "$@"
