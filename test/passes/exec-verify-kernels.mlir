// RUN: fsdp-opt --exec-verify --split-input-file --verify-diagnostics %s

// Rows run at once, and so do the columns of an exec.map. What every column
// gives is stored once, after it.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @every_access over(4, 8) access [element, element, row] outputs 2 {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %r: memref<4xf32>):
    %sum = exec.reduce sum {
      %a = exec.load %x : memref<4x8xf32> -> f32
      exec.yield %a
    }
    exec.map {
      %a = exec.load %x : memref<4x8xf32> -> f32
      exec.store %a, %y : f32, memref<4x8xf32>
      %b = exec.load %y : memref<4x8xf32> -> f32
      exec.store %b, %y : f32, memref<4x8xf32>
    }
    %again = exec.reduce sum {
      %a = exec.load %y : memref<4x8xf32> -> f32
      exec.yield %a
    }
    %both = arith.addf %sum, %again : f32
    exec.store %both, %r : f32, memref<4xf32>
  }
  // One row has one column's element, and one of both the scalar.
  exec.kernel @one_row over(1, 8) access [element, column, scalar] outputs 2 {
  ^bb0(%x: memref<8xf32>, %y: memref<8xf32>, %s: memref<f32>):
    %sum = exec.reduce sum {
      %a = exec.load %x : memref<8xf32> -> f32
      exec.yield %a
    }
    exec.map {
      exec.store %sum, %y : f32, memref<8xf32>
    }
    exec.store %sum, %s : f32, memref<f32>
  }
  exec.kernel @one_column over(8, 1) access [element, row] outputs 1 {
  ^bb0(%x: memref<8xf32>, %r: memref<8xf32>):
    exec.map {
      %a = exec.load %x : memref<8xf32> -> f32
      exec.store %a, %r : f32, memref<8xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_row_in_a_map over(4, 8) access [element, row] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %r: memref<4xf32>):
    exec.map {
      %a = exec.load %x : memref<4x8xf32> -> f32
      // expected-error @below {{is a race: every column writes the same element of an output that is addressed by row}}
      exec.store %a, %r : f32, memref<4xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_column_by_every_row over(4, 8) access [element, column] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %c: memref<8xf32>):
    exec.map {
      %a = exec.load %x : memref<4x8xf32> -> f32
      // expected-error @below {{is a race: every row writes the same element of an output that is addressed by column}}
      exec.store %a, %c : f32, memref<8xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_scalar_by_every_row over(4, 8) access [row, scalar] outputs 1 {
  ^bb0(%x: memref<4xf32>, %s: memref<f32>):
    %a = exec.load %x : memref<4xf32> -> f32
    // expected-error @below {{is a race: every row writes the same element of an output that is addressed by scalar}}
    exec.store %a, %s : f32, memref<f32>
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_scalar_by_every_column over(1, 8) access [element, scalar] outputs 1 {
  ^bb0(%x: memref<8xf32>, %s: memref<f32>):
    exec.map {
      %a = exec.load %x : memref<8xf32> -> f32
      // expected-error @below {{is a race: every column writes the same element of an output that is addressed by scalar}}
      exec.store %a, %s : f32, memref<f32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @an_element_without_a_column over(4, 8) access [element] outputs 1 {
  ^bb0(%y: memref<4x8xf32>):
    %c = arith.constant 0.0 : f32
    // expected-error @below {{needs a column, which exists only inside exec.map and reductions: its argument is addressed by element}}
    exec.store %c, %y : f32, memref<4x8xf32>
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_load_without_a_column over(4, 8) access [column, row] outputs 1 {
  ^bb0(%x: memref<8xf32>, %y: memref<4xf32>):
    // expected-error @below {{needs a column, which exists only inside exec.map and reductions: its argument is addressed by column}}
    %a = exec.load %x : memref<8xf32> -> f32
    exec.store %a, %y : f32, memref<4xf32>
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @no_column over(4, 8) access [row] outputs 1 {
  ^bb0(%y: memref<4xi32>):
    // expected-error @below {{stands outside exec.map and reductions, where there is no column}}
    %j = exec.column
    exec.store %j, %y : i32, memref<4xi32>
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_store_in_a_reduction over(4, 8) access [element, element] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    %sum = exec.reduce sum {
      %a = exec.load %x : memref<4x8xf32> -> f32
      // expected-error @below {{stands inside a reduction, whose body has no effects}}
      exec.store %a, %y : f32, memref<4x8xf32>
      exec.yield %a
    }
  }
}

// -----

// On a GPU the thread that has stored a row's value is one of many.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @an_output_is_read_elsewhere over(4, 8) access [row, row, element] outputs 2 {
  ^bb0(%x: memref<4xf32>, %r: memref<4xf32>, %y: memref<4x8xf32>):
    %a = exec.load %x : memref<4xf32> -> f32
    exec.store %a, %r : f32, memref<4xf32>
    exec.map {
      // expected-error @below {{reads an output that this column has not stored itself: another thread may not have written it yet}}
      %b = exec.load %r : memref<4xf32> -> f32
      exec.store %b, %y : f32, memref<4x8xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @another_column_of_an_output over(4, 8) access [element, element] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    exec.map {
      %a = exec.load %x : memref<4x8xf32> -> f32
      exec.store %a, %y : f32, memref<4x8xf32>
      %last = arith.constant 7 : i32
      // expected-error @below {{reads another column of an output, which another thread may not have written yet}}
      %b = exec.load %y at %last : memref<4x8xf32> -> f32
      exec.store %b, %y : f32, memref<4x8xf32>
    }
  }
}

// -----

// A column that is computed lies in the row whatever its numbers are: the other
// half's, the neighbour's, one that is loaded and cut to the row.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @columns over(4, 24) access [element, row, element] outputs 1 {
  ^bb0(%x: memref<4x24xf32>, %ids: memref<4xi32>, %y: memref<4x24xf32>):
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %half = arith.constant 12 : i32
    %last = arith.constant 23 : i32
    %id = exec.load %ids : memref<4xi32> -> i32
    exec.map {
      %j = exec.column
      %is_low = arith.cmpi slt, %j, %half : i32
      %right = arith.addi %j, %half : i32
      %left = arith.subi %j, %half : i32
      %other = arith.select %is_low, %right, %left : i32
      %a = exec.load %x at %other : memref<4x24xf32> -> f32
      %k = exec.column
      %pair = arith.xori %k, %one : i32
      %b = exec.load %x at %pair : memref<4x24xf32> -> f32
      %is_negative = arith.cmpi slt, %id, %zero : i32
      %not_negative = arith.select %is_negative, %zero, %id : i32
      %is_large = arith.cmpi sgt, %not_negative, %last : i32
      %cut = arith.select %is_large, %last, %not_negative : i32
      %c = exec.load %x at %cut : memref<4x24xf32> -> f32
      %d = arith.addf %a, %b : f32
      %e = arith.addf %c, %d : f32
      exec.store %e, %y : f32, memref<4x24xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_loaded_column over(4, 8) access [element, row, element] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %ids: memref<4xi32>, %y: memref<4x8xf32>):
    exec.map {
      %id = exec.load %ids : memref<4xi32> -> i32
      // expected-error @below {{may read outside of the 8 columns: bound the column, with arith.cmpi and arith.select}}
      %a = exec.load %x at %id : memref<4x8xf32> -> f32
      exec.store %a, %y : f32, memref<4x8xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @the_next_column over(4, 8) access [element, element] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    exec.map {
      %j = exec.column
      %one = arith.constant 1 : i32
      %next = arith.addi %j, %one : i32
      // expected-error @below {{may read outside of the 8 columns}}
      %a = exec.load %x at %next : memref<4x8xf32> -> f32
      exec.store %a, %y : f32, memref<4x8xf32>
    }
  }
}

// -----

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @a_negative_column over(4, 8) access [element, element] outputs 1 {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    exec.map {
      %before = arith.constant -1 : i32
      // expected-error @below {{may read outside of the 8 columns}}
      %a = exec.load %x at %before : memref<4x8xf32> -> f32
      exec.store %a, %y : f32, memref<4x8xf32>
    }
  }
}

// -----

// Two sums into one output.
module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 0 : i64} {
  exec.kernel @k over(32, 4) access [element, block] outputs 1 {
  ^bb0(%x: memref<32x4xf32>, %s: memref<1x4xf32>):
    exec.reduce_rows sum %s : memref<1x4xf32> {
      %a = exec.load %x : memref<32x4xf32> -> f32
      exec.yield %a
    }
    // expected-error @below {{writes an output that the kernel has written}}
    exec.reduce_rows max %s : memref<1x4xf32> {
      %a = exec.load %x : memref<32x4xf32> -> f32
      exec.yield %a
    }
  }
}
