"""What the Python tests share; lit puts test/ on their path.

commands     run a tool, or one that has to fail; settings as arguments; expect
waiting      wait for a condition, never for a time
processes    ranks and children: find them, signal them, look at them
jobs         a training that goes on in the background, and how it ends
runs         an artifact: compile it, run it, read what its runs leave
cache        artifacts that several tests compile alike are compiled once
files        inputs and planted damage: texts, JSON, checksums, rows of tokens
tensors      safetensors, and full tensors from the parts of ranks
fake_device  a job on the stand-in device and the same on the CPU
exec_text, exec_order   planned exec programs as text, and a plain check of them

Only Python's standard library, as the tests run where nothing else is."""
