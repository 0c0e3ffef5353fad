// RUN: fsdp-opt %s --fsdp-plan --split-input-file --verify-diagnostics

// A plan on the module is read as strictly as one in a file: no unknown key.
// expected-error @+1 {{fsdp.plan[0]: unknown key 'prefech'; did you mean 'prefetch'?}}
module attributes {fsdp.plan = [{match = ["fwd * all_gather"], prefech = 1 : i64}]} {}

// -----

// A rule says what it matches.
// expected-error @+1 {{fsdp.plan[0]: 'match' must be an array of strings}}
module attributes {fsdp.plan = [{prefetch = 1 : i64}]} {}

// -----

// An integer is an i64 and no boolean.
// expected-error @+1 {{fsdp.plan[0]: 'prefetch' must be an i64 integer}}
module attributes {fsdp.plan = [{match = ["fwd * all_gather"], prefetch = true}]} {}

// -----

// A boolean is no integer.
// expected-error @+1 {{fsdp.plan[0]: 'merge' must be true or false}}
module attributes {fsdp.plan = [{match = ["fwd * all_gather"], merge = 1 : i64}]} {}

// -----

// Addresses are strings.
// expected-error @+1 {{fsdp.plan[0]: 'match' must be an array of strings}}
module attributes {fsdp.plan = [{match = [1], merge = true}]} {}

// -----

// A bucket has a name.
// expected-error @+1 {{fsdp.plan[0]: 'bucket' must be a string}}
module attributes {fsdp.plan = [{match = ["fwd * all_gather"], bucket = 1}]} {}

// -----

// A rule is a dictionary.
// expected-error @+1 {{fsdp.plan[0]: it must be a dictionary}}
module attributes {fsdp.plan = ["a"]} {}

// -----

// Distances are not negative.
// expected-error @+1 {{fsdp.plan: rules[1]: defer: a distance is not negative}}
module attributes {fsdp.plan = [{match = ["fwd * all_gather"], merge = true},
    {match = ["bwd * reduce_scatter"], defer = -1 : i64}]} {}
