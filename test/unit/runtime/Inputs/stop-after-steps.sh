#!/bin/sh
# stop-after-steps.sh FILE COMMAND...: sends SIGTERM to the command alone once it
# has written FILE, and ends with its status.
file=$1
shift
"$@" &
while ! test -s "$file" && kill -0 $! 2>/dev/null; do
  sleep 0.05
done
kill -TERM $!
wait $!
