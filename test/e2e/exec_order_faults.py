#!/usr/bin/env python3
"""Plants one fault after another in a small program by hand: exec_order.py, by
which exec-verify is judged, must find each and name it."""
import sys

from support import exec_order, exec_text

GOOD = """module attributes {exec.arena_bytes = 1024 : i64, exec.persistent_bytes = 384 : i64, exec.target = "test"} {
  exec.range @w : memref<16xf32> role parameter at 0
  exec.range @y : memref<16xf32> role output at 128
  exec.range @g : memref<16xf32> role gradient at 256
  fsdp.mesh @mesh ["dp_shard" = 1]
  exec.func @move {
  ^bb0(%from: memref<16xf32>, %to: memref<16xf32>):
    %t = exec.alloc at 896 : memref<16xf32>
    exec.copy on compute(%from : memref<16xf32>) outs(%t : memref<16xf32>)
    exec.record 0 on compute
    exec.copy on compute(%t : memref<16xf32>) outs(%to : memref<16xf32>)
  }
  exec.program @train arena 1024 attributes {exec.reads = ["w"], exec.writes = ["y", "w"]} {
    %w = exec.get @w : memref<16xf32>
    %y = exec.get @y : memref<16xf32>
    %g = exec.get @g : memref<16xf32>
    %a = exec.alloc at 384 "a" : memref<16xf32>
    %b = exec.alloc at 512 : memref<32xf32>
    %s = exec.alloc at 768 : memref<64xi8>
    %low = exec.view %b[0] : memref<32xf32> to memref<16xf32>
    exec.record 0 on compute
    exec.wait 0 on gather
    exec.collective all_gather on gather(%w : memref<16xf32>) outs(%a : memref<16xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd first">}
    exec.record 1 on gather
    exec.wait 1 on compute
    exec.call @move(%a, %low) events [5] : memref<16xf32>, memref<16xf32>
    exec.call @move(%low, %y) events [6] : memref<16xf32>, memref<16xf32>
    exec.wait 6 on gather
    exec.collective all_gather on gather(%w : memref<16xf32>) outs(%a : memref<16xf32>) over @mesh["dp_shard"]
    exec.record 3 on gather
    exec.wait 3 on compute
    exec.collective all_reduce on compute(%a : memref<16xf32>) outs(%a : memref<16xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
    exec.copy on compute(%a : memref<16xf32>) outs(%w : memref<16xf32>)
  }
}
"""
LAST = "    exec.copy on compute(%a : memref<16xf32>) outs(%w : memref<16xf32>)\n"
C = ("    %s = exec", "    %c = exec.alloc at 384 : memref<16xf32>\n    %s = exec")
COPY_C = "    exec.copy on compute(%w : memref<16xf32>) outs(%c : memref<16xf32>)\n"
PRODUCT = """    %m = exec.view %b[0] : memref<32xf32> to memref<4x4xf32>
    %n = exec.view %a[0] : memref<16xf32> to memref<4x4xf32>
    exec.gemm on compute(%m, %m : memref<4x4xf32>, memref<4x4xf32>) outs(%n : memref<4x4xf32>) workspace(%s : memref<64xi8>)
"""
READ = "a read does not wait for a write"
NOT_THERE = "a read of what is not there"
IN_PLACE = "an output is an input"
# @y lies after the persistent part.
BEHIND = (("exec.persistent_bytes = 384", "exec.persistent_bytes = 128"),
          ("  exec.range @g : memref<16xf32> role gradient at 256\n", ""),
          ("    %g = exec.get @g : memref<16xf32>\n", ""))
GIVES_Y = ("{exec.reads", '{exec.outputs = ["y"], exec.reads')
READS_W, WRITES = 'exec.reads = ["w"]', 'exec.writes = ["y", "w"]'
STEPS = (("exec.target", "exec.steps = {train = {train = 1 : i64}}, nn.steps = {train = "
          "[#nn.action<@train times 1>]}, exec.target"),)
EDITS = [
    # (what is wrong then, what is replaced and by what); None: nothing is.
    (None, C),
    (None, ("    exec.wait 6 on gather\n", "    exec.wait 5 on gather\n")),
    (None, C, (LAST, LAST + COPY_C)),
    (None, *BEHIND, GIVES_Y),
    # Order.
    ("a stream starts before the program", ("    exec.wait 0 on gather\n", "")),
    (READ, ("    exec.wait 1 on compute\n", "")),
    (READ, ("    exec.record 3 on gather\n    exec.wait 3 on compute\n", "")),
    ("a write does not wait for a read", ("    exec.wait 6 on gather\n", "")),
    ("a write does not wait for a write",
     ("    exec.record 3 on gather\n", "    exec.record 3 on gather\n    exec.wait 6 on copy\n"
      "    exec.copy on copy(%w : memref<16xf32>) outs(%a : memref<16xf32>)\n")),
    ("a stream is left running",
     (LAST, LAST + "    exec.record 9 on compute\n    exec.wait 9 on reduce\n    exec.copy on "
      "reduce(%w : memref<16xf32>) outs(%low : memref<16xf32>)\n")),
    ("a wait without record", ("exec.wait 3 on compute", "exec.wait 4 on compute")),
    ("an event that the call lacks", ("exec.record 0 on compute\n    exec.copy",
                                      "exec.record 1 on compute\n    exec.copy")),
    ("a negative event", ("events [5]", "events [-5]")),
    # Places.
    ("an interval's alignment", ("at 384 \"a\"", "at 448")),
    ("an interval's place", ("at 384 \"a\"", "at 256")),
    ("a range's place", ("role output at 128", "role output at 0")),
    ("a range above the persistent part",
     ("exec.persistent_bytes = 384", "exec.persistent_bytes = 256")),
    ("an output of another program", *BEHIND),
    ("an interval over an output", *BEHIND, GIVES_Y, ("at 384 \"a\"", "at 128")),
    ("a program above the arena", ("arena 1024", "arena 1152")),
    ("bytes above the program's peak", ("@train arena 1024", "@train arena 896")),
    ("a view leaves its source", ("%b[0]", "%b[17]")),
    # Content.
    (NOT_THERE, C, (LAST, COPY_C + LAST)),
    (NOT_THERE, C, (LAST, LAST.replace("%a", "%c"))),
    (NOT_THERE, (LAST, LAST.replace("%a : memref<16xf32>", "%s : memref<64xi8>"))),
    (NOT_THERE, ("at 768", "at 512"), (LAST, LAST.replace("%a", "%low"))),
    (NOT_THERE, ("exec.copy on compute(%from : memref<16xf32>) outs(%t : memref<16xf32>)\n", "")),
    ("a range as workspace", ("workspace(%s : memref<64xi8>)", "workspace(%y : memref<16xf32>)")),
    # Calls.
    (NOT_THERE, ("@move(%a, %low)", "@move(%low, %a)")),
    (NOT_THERE, ("@move(%a, %low)", "@move(%w, %w)")),
    (NOT_THERE, ("exec.call @move(%a, %low) events [5] : memref<16xf32>, memref<16xf32>\n", "")),
    (NOT_THERE, ("@move(%low, %y)", "@move(%g, %y)")),
    (NOT_THERE, ("@move(%low, %y)", "@move(%y, %low)")),
    ("a call with other types", ("@move(%low, %y)", "@move(%b, %y)")),
    # Statements.
    ("a program states nothing", (READS_W + ", ", "")),
    ("a name of no range", (READS_W, 'exec.inputs = ["x"], ' + READS_W)),
    ("a read that is not stated", (READS_W, "exec.reads = []")),
    ("a stated read is missing", (READS_W, 'exec.reads = ["w", "g"]')),
    ("a write that is not stated", (WRITES, 'exec.writes = ["y"]')),
    ("a range is not written whole", (WRITES, 'exec.writes = ["y", "w", "g"]')),
    ("a range is not written whole", (LAST, "")),
    ("an output is given, but not written", GIVES_Y, (WRITES, 'exec.writes = ["w"]')),
    ("a sum is not read and written", (READS_W, 'exec.adds = ["y"], ' + READS_W)),
    ("an input is read that nobody fills", ("role parameter", "role input")),
    # Steps.
    (None, *STEPS),
    (None, *STEPS, ("exec.steps = {train = {train = 1", "exec.steps = {train = {train = 2"),
     ("times 1", "times 2")),
    ("a step states nothing", *STEPS, ("exec.steps", "exec.others")),
    ("a step runs no program", *STEPS, ("@train times", "@move times")),
    ("a program runs too often or too seldom", *STEPS, ("times 1", "times 2")),
    ("a sum is not added to", (READS_W, 'exec.adds = ["w"], ' + READS_W)),
    ("a range is not cleared", (READS_W, 'exec.clears = ["w"], ' + READS_W)),
    ("what is cleared is not written", (READS_W, 'exec.clears = ["g"], ' + READS_W)),
    ("a sum is added to and cleared",
     (READS_W, 'exec.adds = ["w"], exec.clears = ["w"], ' + READS_W)),
    # Operands of one operation.
    (IN_PLACE, ("at 896", "at 384")),
    (IN_PLACE, ("at 768", "at 384")),
    (IN_PLACE, ("all_reduce on", "all_gather on"), (" workspace(%s : memref<64xi8>)", "")),
    (IN_PLACE, (LAST, LAST.replace("%a", "%w"))),
    (IN_PLACE, ("workspace(%s : memref<64xi8>)", "workspace(%a : memref<16xf32>)")),
    ("a collective's sizes", ("= 1]", "= 2]")),
    ("a collective's sizes", ("%a = exec.alloc at 384 \"a\" : memref<16xf32>",
                              "%a = exec.alloc at 384 \"a\" : memref<4x4xf32>"),
     ("outs(%a : memref<16xf32>)", "outs(%a : memref<4x4xf32>)")),
    # What a library computes with.
    (None, (LAST, PRODUCT + LAST)),
    ("an operand of a library is not aligned", (LAST, PRODUCT.replace("%b[0]", "%b[4]") + LAST)),
    # Other targets than "test" would take that.
    ("an operand of a library is not aligned", (LAST, PRODUCT.replace("%b[0]", "%b[16]") + LAST)),
    # Workspaces: 16 floats of one rank.
    ("a workspace is too small", ("%s = exec.alloc at 768 : memref<64xi8>",
                                  "%s = exec.alloc at 768 : memref<63xi8>")),
    ("the number of workspaces", (" workspace(%s : memref<64xi8>)", "")),
    (None, ('exec.target = "test"', "exec.here = true"), ("%s = exec.alloc at 768 : memref<64xi8>",
                                                          "%s = exec.alloc at 768 : memref<63xi8>")),
]


# Two microbatches, whose sum one program makes and another takes and clears,
# after a count of the whole step.
SUMS = """module attributes {exec.arena_bytes = 448 : i64, exec.persistent_bytes = 320 : i64, exec.steps = {train = {accumulate = 2 : i64, label = 1 : i64, update = 1 : i64}}, nn.steps = {train = [#nn.action<@label times 1>, #nn.action<@accumulate times 2>, #nn.action<@update times 1>]}} {
  exec.range @sum : memref<4xf32> role state at 0 {init = #nn.zeros}
  exec.range @targets : memref<4xf32> role input at 64
  exec.range @targets.of_step : memref<8xf32> role input at 128
  exec.range @n : memref<4xf32> role input at 192
  exec.range @y : memref<4xf32> role output at 256
  exec.kernel @add over(1, 4) access [element, element, element] outputs 1 {
  ^bb0(%in0: memref<4xf32>, %in1: memref<4xf32>, %out0: memref<4xf32>):
    exec.map {
      %0 = exec.load %in0 : memref<4xf32> -> f32
      %1 = exec.load %in1 : memref<4xf32> -> f32
      %2 = arith.addf %0, %1 : f32
      exec.store %2, %out0 : f32, memref<4xf32>
    }
  }
  exec.program @label arena 320 attributes {exec.inputs = ["targets.of_step"], exec.outputs = ["n"], exec.reads = ["targets.of_step"], exec.writes = ["n"]} {
    %all = exec.get @targets.of_step : memref<8xf32>
    %n = exec.get @n : memref<4xf32>
    %half = exec.view %all[0] : memref<8xf32> to memref<4xf32>
    exec.copy on compute(%half : memref<4xf32>) outs(%n : memref<4xf32>)
  }
  exec.program @accumulate arena 448 attributes {exec.inputs = ["targets", "n"], exec.outputs = [], exec.reads = ["targets", "n", "sum"], exec.writes = ["sum"], exec.adds = ["sum"]} {
    %sum = exec.get @sum : memref<4xf32>
    %targets = exec.get @targets : memref<4xf32>
    %n = exec.get @n : memref<4xf32>
    %a = exec.alloc at 320 : memref<4xf32>
    %b = exec.alloc at 384 : memref<4xf32>
    exec.launch @add on compute(%targets, %n : memref<4xf32>, memref<4xf32>) outs(%a : memref<4xf32>)
    exec.launch @add on compute(%sum, %a : memref<4xf32>, memref<4xf32>) outs(%b : memref<4xf32>)
    exec.copy on compute(%b : memref<4xf32>) outs(%sum : memref<4xf32>)
  }
  exec.program @update arena 320 attributes {exec.inputs = [], exec.outputs = ["y"], exec.reads = ["sum"], exec.writes = ["y", "sum"], exec.clears = ["sum"]} {
    %sum = exec.get @sum : memref<4xf32>
    %y = exec.get @y : memref<4xf32>
    exec.copy on compute(%sum : memref<4xf32>) outs(%y : memref<4xf32>)
    exec.fill_zero on compute() outs(%sum : memref<4xf32>)
  }
}
"""
NOT_ADDED = "a sum is not added to"
TO_SUM = "exec.copy on compute(%b : memref<4xf32>) outs(%sum"
LABEL, ADD, UPDATE = (f"#nn.action<@{program}>" for program in
                      ("label times 1", "accumulate times 2", "update times 1"))
LOST = ((', exec.adds = ["sum"]', ""), ('"n", "sum"], exec.writes', '"n"], exec.writes'),
        ("(%sum, %a :", "(%n, %a :"))


def other_rows(name, value, rows, wanted):
    """Edits that give an input other rows, of which a program reads the first."""
    old, new = f"memref<{rows}xf32>", f"memref<{wanted}xf32>"
    get = f"= exec.get @{name} : "
    return ((f"@{name} : {old}", f"@{name} : {new}"),
            (f"%{value} {get}{old}", f"%whole {get}{new}\n    %{value} = exec.view %whole[0] : "
                                     f"{new} to {old}"))


SUM_EDITS = [
    # What is added is not looked at, nor in which order, nor in how many parts.
    (None, ("(%sum, %a :", "(%a, %sum :")),
    (None, ("(%sum, %a :", "(%sum, %sum :")),
    (None, ("@add on compute(%targets, %n", "@add on compute(%sum, %n"),
     ("(%sum, %a :", "(%targets, %a :")),
    (NOT_ADDED, (TO_SUM, TO_SUM.replace("%b", "%a"))),
    (NOT_ADDED, (TO_SUM, TO_SUM.replace("%b", "%targets"))),
    (NOT_ADDED, ("arith.addf", "arith.mulf")),
    (NOT_ADDED, ("%1 = exec.load %in1", "%other = exec.load %in0"),
     ("arith.addf %0, %1", "arith.addf %other, %other"), ("(%sum, %a :", "(%a, %sum :")),
    ("an addition that is not stated", (', exec.adds = ["sum"]', "")),
    ("a range is not cleared",
     ("exec.fill_zero on compute()", "exec.copy on compute(%y : memref<4xf32>)")),
    ("a sum is left full", (', exec.clears = ["sum"]', "")),
    ("a sum begins with a value", ("#nn.zeros", "#nn.ones")),
    # Steps: a program that comes first, or last, or is left out.
    ("a read of what another program has yet to write",
     (LABEL, "FIRST"), (ADD, LABEL), ("FIRST", ADD)),
    ("a read of what no program of the step writes",
     (LABEL + ", ", ""), (", label = 1 : i64", "")),
    ("a read of an empty sum", (ADD, "FIRST"), (UPDATE, ADD), ("FIRST", UPDATE)),
    ("another number of slices", ("@accumulate times 2", "@accumulate times 3"),
     ("accumulate = 2", "accumulate = 3")),
    ("another number of slices", *other_rows("targets", "targets", 4, 8)),
    ("slices of another size", *other_rows("targets.of_step", "all", 8, 10)),
    # Only the last microbatch would count.
    ("a read of the last microbatch alone", *LOST),
    (None, *LOST, ('"targets", "n"]', '"n"]'), ('"targets", "n"]', '"n"]'),
     ("%targets, %n", "%n, %n")),
]


def main():
    wrong = faults = 0
    for good, all_edits in ((GOOD, EDITS), (SUMS, SUM_EDITS)):
        for expected, *edits in [(None,), *all_edits]:
            content = good
            for old, new in edits:
                if old not in content:
                    sys.exit(f"the program has no {old!r}")
                content = content.replace(old, new, 1)
            found = exec_order.fault_of(exec_text.Module(content))
            faults += expected is not None
            if found != expected:
                print(f"{edits}: expected {expected}, found {found}")
                wrong += 1
    print(f"{faults} faults planted, {wrong} programs judged wrongly")


if __name__ == "__main__":
    main()
