// RUN: fsdp-opt %s --fsdp-plan --split-input-file --verify-diagnostics

// A plan on the module is read as strictly as one in a file: no unknown key.
// expected-error @+1 {{fsdp.plan[0]: unknown key 'forward_prefech'; did you mean 'forward_prefetch'?}}
module attributes {fsdp.plan = [{name = "a", parameters = [], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefech = 1 : i64, backward_prefetch = 1 : i64, reduce_defer = 1 : i64}]} {}

// -----

// Every key is stated.
// expected-error @+1 {{fsdp.plan[0]: 'reduce_defer' must be an i64 integer}}
module attributes {fsdp.plan = [{name = "a", parameters = [], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefetch = 1 : i64, backward_prefetch = 1 : i64}]} {}

// -----

// An integer is an i64 and no boolean.
// expected-error @+1 {{fsdp.plan[0]: 'forward_prefetch' must be an i64 integer}}
module attributes {fsdp.plan = [{name = "a", parameters = [], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefetch = true, backward_prefetch = 1 : i64, reduce_defer = 1 : i64}]} {}

// -----

// A boolean is no integer.
// expected-error @+1 {{fsdp.plan[0]: 'bucket' must be true or false}}
module attributes {fsdp.plan = [{name = "a", parameters = [], bucket = 1 : i64, reshard_after_forward = true,
    overlap = true, forward_prefetch = 1 : i64, backward_prefetch = 1 : i64, reduce_defer = 1 : i64}]} {}

// -----

// Parameters are names.
// expected-error @+1 {{fsdp.plan[0]: 'parameters' must be an array of strings}}
module attributes {fsdp.plan = [{name = "a", parameters = [1], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefetch = 1 : i64, backward_prefetch = 1 : i64, reduce_defer = 1 : i64}]} {}

// -----

// A unit has a name.
// expected-error @+1 {{fsdp.plan[0]: 'name' must be a string}}
module attributes {fsdp.plan = [{name = 1, parameters = [], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefetch = 1 : i64, backward_prefetch = 1 : i64, reduce_defer = 1 : i64}]} {}

// -----

// A unit is a dictionary.
// expected-error @+1 {{fsdp.plan[0]: it must be a dictionary}}
module attributes {fsdp.plan = ["a"]} {}

// -----

// Units have different names.
// expected-error @+1 {{fsdp.plan: units[1].name: an earlier unit is called 'a' too}}
module attributes {fsdp.plan = [
  {name = "a", parameters = [], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefetch = 1 : i64, backward_prefetch = 1 : i64, reduce_defer = 1 : i64},
  {name = "a", parameters = [], bucket = true, reshard_after_forward = true,
    overlap = true, forward_prefetch = 1 : i64, backward_prefetch = 1 : i64, reduce_defer = 1 : i64}]} {}
