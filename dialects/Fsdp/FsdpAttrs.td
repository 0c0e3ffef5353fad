//===- FsdpAttrs.td - Mesh axes, placements, enums ------------*- tablegen -*-===//
#ifndef FSDP_FSDP_ATTRS
#define FSDP_FSDP_ATTRS

include "dialects/Fsdp/FsdpDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

def Fsdp_MeshAxisAttr : AttrDef<Fsdp_Dialect, "MeshAxis"> {
  let mnemonic = "axis";
  let summary = "A named axis of a mesh with its size and its kind";
  let description = [{
    `#fsdp.axis<"dp_shard" = 4 : data>` has a kind, `#fsdp.axis<"x" = 2>` has none. Over `data` axes batches
    are split, and parameters are stored sharded. The ranks of a `tensor` axis compute a layer together, and
    the built-in placement policy of Llama uses that axis. An axis without a kind is used by a policy that
    names it. The name has no meaning. Only fsdp-shard reads kinds; later passes read placements.

    Constraints: 1. the name is not empty; 2. the size is from 1 to 2^20; 3. the
    kind is `data` or `tensor`.
  }];
  let parameters = (ins StringRefParameter<>:$name, "int64_t":$size,
      OptionalParameter<"::std::optional<::fsdp::AxisKind>">:$kind);
  let assemblyFormat = "`<` $name `=` $size `` custom<AxisKind>($kind) `>`";
  let genVerifyDecl = 1;
}

def Fsdp_AxisRefAttr : AttrDef<Fsdp_Dialect, "AxisRef"> {
  let mnemonic = "axis_ref";
  let summary = "A mesh axis, or the part of one with `size` ranks after a prefix of `pre`";
  let description = [{
    `#fsdp.axis_ref<"dp_shard">` is the whole axis. `#fsdp.axis_ref<"dp_shard", 2, 4>` is the sub-axis of size
    4 when the axis is split into 2 (outermost) x 4 x the rest (innermost, consecutive ranks). `size` 0 means
    the whole axis.

    Constraints: 1. pre is at least 1, size at least 0, and neither above
    2^20; 2. the whole axis has no prefix.
  }];
  let parameters = (ins StringRefParameter<>:$name,
      DefaultValuedParameter<"int64_t", "1">:$pre,
      DefaultValuedParameter<"int64_t", "0">:$size);
  let assemblyFormat = "`<` $name `` custom<SubAxis>($pre, $size) `>`";
  let builders = [AttrBuilder<(ins "::llvm::StringRef":$name), [{ return $_get($_ctxt, name, 1, 0); }]>];
  let genVerifyDecl = 1;
}

def Fsdp_DimAxesAttr : AttrDef<Fsdp_Dialect, "DimAxes"> {
  let mnemonic = "dim_axes";
  let summary = "The mesh axes over which one dimension is sharded";
  let description = [{
    `{"tp" | "dp_shard"}` splits the dimension over the compute axes, outermost first, then each shard over all
    storage axes at once. It is written inside #fsdp.placement.

    Example: `#fsdp.dim_axes<{"tp" | "dp_shard"}>`
  }];
  let parameters = (ins OptionalArrayRefParameter<"AxisRefAttr">:$compute,
      OptionalArrayRefParameter<"AxisRefAttr">:$storage);
  let hasCustomAssemblyFormat = 1;
}

def Fsdp_PlacementAttr : AttrDef<Fsdp_Dialect, "Placement"> {
  let mnemonic = "placement";
  let summary = "Placement of a logical tensor on a mesh";
  let description = [{
    One list of mesh axes per dimension, the outermost first. The dimension is split into as many shards as the
    axes have ranks, and a rank has the shard of its coordinates. Over axes that no list names, the tensor is
    replicated. Over the axes of `partial`, it is the sum (or the maximum) of the tensors of the ranks.

    The compute axes of a dimension divide it evenly: they are the compute placement. The storage placement of
    a parameter may split it further, over storage axes after a `|`. Together these split each shard of the
    compute axes into pieces of ceil(size / pieces), the last ones padded with zeros. Gathering over them
    produces the compute placement.

    Example:
    ```mlir
    nn.parameter @w : tensor<64x48xf32> init #nn.zeros
        {fsdp.placement = #fsdp.placement<[{"tp" | "dp_shard"}, {} ]>}
    // tp = 2, dp_shard = 4: rank (d, t) has rows [32t + 8d, 32t + 8d + 8).

    // The matrix product of shards along the dimension that it sums over:
    #fsdp.placement<[{}, {} ], partial = sum {"tp"}>
    ```

    Constraints: 1. no part of an axis is named twice; 2. `partial` names at least one axis; on a mesh: 3. one
    list per dimension; 4. the mesh has the axes; 5. compute axes divide the dimension; 6. storage axes belong
    to a parameter or buffer, whose placement is not partial.
  }];
  let parameters = (ins ArrayRefParameter<"DimAxesAttr">:$dims,
      OptionalArrayRefParameter<"AxisRefAttr">:$partial,
      DefaultValuedParameter<"CollectiveReduce", "CollectiveReduce::Sum">:$kind);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Every rank has all of a tensor of this many dimensions.
    static PlacementAttr replicated(::mlir::MLIRContext *context, int64_t rank);
    /// Without the storage axes.
    PlacementAttr getCompute();
  }];
}

def Fsdp_OriginAttr : AttrDef<Fsdp_Dialect, "Origin"> {
  let mnemonic = "origin";
  let summary = "Where in a program something comes from: phase, path and op";
  let description = [{
    As `fsdp.origin` of an op it is the *address* of the op, by which plans name it. The text is the same in
    plans, artifacts and messages: a phase (`fwd`, `again`, `bwd` or `update`), the path of a module, parameter
    or bucket, and an op with the number that distinguishes it from others of its name. After `all` there is no
    op, and the origin stands for everything under the path: what a collective `serves`.

    Example:
    ```mlir
    %y = nn.linear %x, %w {fsdp.origin = #fsdp.origin<"fwd layers.3.attention.wq linear">, …}
    %r = nn.rotary %q, %t {fsdp.origin = #fsdp.origin<"fwd layers.3.attention rotary#2">, …}
    %s = nn.sum %y [0, 1] {fsdp.origin = #fsdp.origin<"fwd sum">, …} // no module
    %g = fsdp.all_gather %p … {serves = #fsdp.origin<all "fwd layers.3">, …}
    ```

    Constraints: 1. it begins with one of the four phases; 2. a path that is written, and the path after `all`,
    is not empty; 3. the op has a name; 4. its number is from 2 to 2^32 - 1, without leading zeros.
  }];
  let parameters = (ins "::fsdp::dist::Phase":$phase, StringRefParameter<>:$path,
      StringRefParameter<>:$op, "unsigned":$index,
      StringRefParameter<"the text of the others">:$text);
  let skipDefaultBuilders = 1;
  let builders = [AttrBuilder<(ins "const ::fsdp::dist::Origin &":$origin), [{
    assert(origin.isValid() && "the words of an origin are read back as they are");
    return $_get($_ctxt, origin.phase, origin.path, origin.op, origin.index, origin.str());
  }]>];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    Origin getOrigin() const { return {getPhase(), getPath(), getOp(), getIndex()}; }
    /// The same op recomputed in the backward pass.
    OriginAttr again() const { return get(getContext(), getOrigin().again()); }
  }];
}

/// What a collective is for.
def Fsdp_ServesAttr : ConfinedAttr<Fsdp_OriginAttr, [
    AttrConstraint<CPred<"::llvm::cast<::fsdp::dist::OriginAttr>($_self).getOp().empty()">,
                   "without an op">]> {
  let summary = "a #fsdp.origin of all of a path, without an op";
}

def Fsdp_DecisionAttr : AttrDef<Fsdp_Dialect, "Decision"> {
  let mnemonic = "decision";
  let summary = "What is decided about an op";
  let description = [{
    What a plan decides about the op that has it as `fsdp.decision`. Names and values are those of a rule of a
    plan. Fields that are not written have defaults: a bucket of its own, `merge = true`, no overlap, distances
    of 0, no addresses, and no recomputation. `again` decides about the clone that fsdp-remat creates of a
    collective; clones of other values have no decision.

    Example:
    ```mlir
    %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0
        {fsdp.decision = #fsdp.decision<bucket = "layers.3", overlap = true,
           start_after = "fwd layers.1.attention.wo linear", recompute = true,
           again = <bucket = "layers.3", overlap = true, prefetch = 1>>, …}
    %y = nn.silu %x {fsdp.decision = #fsdp.decision<>, …} // it is kept
    ```

    Constraints: 1. distances are not negative; 2. `again` has no `again`; on an op: 3. each field that is set
    applies to such an op; 4. `again` stands beside `recompute = true` and has no `recompute` itself.
  }];
  let parameters = (ins
      AttrParameter<"::fsdp::dist::Decision", "what is decided", "const ::fsdp::dist::Decision &">:$decision,
      OptionalParameter<"::fsdp::dist::DecisionAttr">:$again);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Fsdp_ReduceKind : I32EnumAttr<"CollectiveReduce", "how a collective combines", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::fsdp::dist";
  let genSpecializedAttr = 0;
}
def Fsdp_ReduceKindAttr : EnumAttr<Fsdp_Dialect, Fsdp_ReduceKind, "reduce">;

/// CollectiveLayout (Fsdp.h) says what each kind does to the tensors of the ranks.
/// The first kinds are those of rt::CollectiveKind, with the same numbers.
def Fsdp_CollectiveKind : I32EnumAttr<"CollectiveKind", "which collective", [
    I32EnumAttrCase<"AllGather", 0, "all_gather">,
    I32EnumAttrCase<"ReduceScatter", 1, "reduce_scatter">,
    I32EnumAttrCase<"AllReduce", 2, "all_reduce">,
    I32EnumAttrCase<"AllToAll", 3, "all_to_all">]> {
  let cppNamespace = "::fsdp::dist";
  let genSpecializedAttr = 0;
}
def Fsdp_CollectiveKindAttr : EnumAttr<Fsdp_Dialect, Fsdp_CollectiveKind, "collective_kind">;

#endif // FSDP_FSDP_ATTRS
