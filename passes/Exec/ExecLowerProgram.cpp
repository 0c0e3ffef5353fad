//===- ExecLowerProgram.cpp - One program: values, state, kernels ---------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "dialects/NN/ModulePath.h"
#include "passes/Exec/ExecLower.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

ProgramLowering::ProgramLowering(ModuleState &state, func::FuncOp func)
    : state(state), func(func), b(func.getContext()) {}

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

Value ProgramLowering::alloc(MemRefType type, Value tensor, Operation *op,
                             StringRef suffix) {
  std::string label = labelOf(tensor, op);
  if (!suffix.empty())
    label += (" " + suffix).str();
  return exec::AllocOp::create(b, op->getLoc(), type, IntegerAttr(),
                               b.getStringAttr(label));
}

Value ProgramLowering::view(Value buffer, ArrayRef<int64_t> shape,
                            int64_t offset) {
  auto type = MemRefType::get(
      shape, cast<MemRefType>(buffer.getType()).getElementType());
  if (auto inner = buffer.getDefiningOp<exec::ViewOp>()) {
    offset += inner.getOffset();
    buffer = inner.getSource();
  }
  if (offset == 0 && buffer.getType() == type)
    return buffer;
  Value &known = views[{{buffer, offset}, type}];
  if (!known)
    known = exec::ViewOp::create(b, buffer.getLoc(), type, buffer,
                                 b.getI64IntegerAttr(offset));
  return known;
}

Value ProgramLowering::get(exec::RangeOp range) {
  MemRefType type = range.getMemRefType();
  const auto *group = state.getAdjacent().groupOf(range.getSymName());
  if (joined.contains(group)) {
    size_t number =
        llvm::find(group->names, range.getSymNameAttr()) - group->names.begin();
    return view(get(*group, type.getElementType()), type.getShape(),
                group->begins[number]);
  }
  Value &value = gets[range.getSymName()];
  if (!value)
    value =
        exec::GetOp::create(b, range.getLoc(), type, range.getSymNameAttr());
  return value;
}

bool ProgramLowering::isAt(Value buffer, Value place) const {
  exec::ByteRange a = exec::resolveRange(buffer);
  exec::ByteRange b = exec::resolveRange(place);
  return a.root == b.root && a.begin == b.begin;
}

Value ProgramLowering::buffer(Value tensor) {
  if (Value known = held.lookup(tensor))
    return known;
  // Constants get a buffer only where an op outside of kernels needs one.
  assert(splatOf(tensor) && "operands are lowered before their users");
  launch(splatKernel(tensor, state.kernels), tensor.getDefiningOp());
  return held.lookup(tensor);
}

Value ProgramLowering::output(Value result, Operation *op) {
  Value &known = held[result];
  known = destinations.lookup(result);
  if (!known)
    known = alloc(memRefOf(result.getType()), result, op);
  return known;
}

Value ProgramLowering::buffer(Value result, Operation *op) {
  Value known = held.lookup(result);
  return known ? known : output(result, op);
}

SmallVector<Value> ProgramLowering::buffers(ValueRange tensors) {
  return llvm::map_to_vector(tensors, [&](Value v) { return buffer(v); });
}

SmallVector<Value> ProgramLowering::outputs(Operation *op) {
  return llvm::map_to_vector(op->getResults(),
                             [&](Value v) { return output(v, op); });
}

void ProgramLowering::copy(Location loc, Value from, Value to) {
  exec::CopyOp::create(b, loc, exec::Stream::Compute, from, to,
                       /*workspaces=*/ValueRange());
}

//===----------------------------------------------------------------------===//
// Arguments and results
//===----------------------------------------------------------------------===//

/// The range of an argument or result. What a local program places has a
/// logical type, of which its type is this rank's part.
FailureOr<exec::RangeOp> ProgramLowering::declare(Location loc, Type type,
                                                  StringRef what,
                                                  unsigned number,
                                                  DictionaryAttr attributes,
                                                  exec::Role role) {
  auto emitError = [&] {
    return func.emitError()
           << what << " " << number << " of @" << func.getSymName();
  };
  auto get = [&](StringRef name) {
    return attributes ? attributes.get(name) : Attribute();
  };
  if (!isa<RankedTensorType>(type))
    return emitError() << " is not a tensor but " << type;
  auto name = dyn_cast_or_null<StringAttr>(get(nn::kNameAttr));
  if (!name)
    return emitError() << " has no " << nn::kNameAttr;
  if (role == exec::Role::Output && gets.contains(name.getValue()))
    return emitError() << " has the name of an argument, " << name;
  auto placement = cast_or_null<dist::PlacementAttr>(get(dist::kPlacementAttr));
  TypeAttr full;
  if (placement) {
    if (!func->hasAttr(dist::kLocalAttr))
      return emitError() << " has a placement, but the type of the whole "
                            "tensor; run fsdp-expand first";
    dist::Placement at(placement);
    dist::MeshOp mesh = state.getMesh();
    RankedTensorType whole = dist::logicalType(type, at, func, mesh);
    // A product that wraps does not divide back.
    if (!nn::hasCheckedSize(whole) || dist::localType(whole, at, mesh) != type)
      return emitError() << " is the shard of a tensor of more than 2^56 bytes";
    full = TypeAttr::get(whole);
  }
  return state.declareShared(loc, name, memRefOf(type), role, full, placement);
}

LogicalResult ProgramLowering::bindArguments() {
  SmallVector<StringRef> names;
  for (BlockArgument argument : func.getArguments()) {
    unsigned number = argument.getArgNumber();
    auto range =
        declare(argument.getLoc(), argument.getType(), "argument", number,
                func.getArgAttrDict(number), exec::Role::Input);
    if (failed(range))
      return failure();
    held[argument] = get(*range);
    names.push_back(range->getSymName());
  }
  program->setAttr(exec::kInputsAttr, b.getStrArrayAttr(names));
  return success();
}

bool lower::ownsBuffer(Value value) {
  Operation *op = value.getDefiningOp();
  return op && !isa<nn::ReadOp>(op) && !nn::aliasesOperands(op);
}

void ProgramLowering::chooseDestination(Value value, exec::RangeOp range) {
  // A reshaped value is written through a view of the range.
  while (auto reshape = value.getDefiningOp<nn::ReshapeOp>())
    value = reshape.getInput();
  // What is added to in place is there from the first addend on.
  while (Value sum = sumUpdatedInPlace(value))
    value = sum;
  if (!ownsBuffer(value) || destinations.contains(value))
    return;
  destinations[value] =
      view(get(range), cast<RankedTensorType>(value.getType()).getShape());
}

LogicalResult ProgramLowering::bindResults() {
  SmallVector<StringRef> names;
  Operation *end = func.front().getTerminator();
  for (auto [number, value] : llvm::enumerate(end->getOperands())) {
    auto range = declare(end->getLoc(), value.getType(), "result", number,
                         func.getResultAttrDict(number), exec::Role::Output);
    if (failed(range))
      return failure();
    resultRanges.push_back(*range);
    names.push_back(range->getSymName());
    chooseDestination(value, *range);
  }
  program->setAttr(exec::kOutputsAttr, b.getStrArrayAttr(names));
  for (auto gradient : func.getOps<nn::GradientOp>())
    if (exec::RangeOp range = state.gradientOf(gradient.getName()))
      chooseDestination(gradient.getValue(), range);
  // A value may be produced where it goes if nothing else of the program is
  // there.
  llvm::StringSet<> read;
  for (auto op : func.getOps<nn::ReadOp>())
    read.insert(op.getName());
  for (auto write : func.getOps<nn::WriteOp>())
    if (exec::RangeOp range = state.lookup(write.getName());
        range && updates.lookup(write.getName()).size() == 1 &&
        !read.contains(write.getName()))
      chooseDestination(write.getValue(), range);
  for (auto join : func.getOps<nn::ConcatOp>())
    chooseDestinations(join);
  return success();
}

LogicalResult ProgramLowering::lowerReturn() {
  Operation *end = func.front().getTerminator();
  for (auto [value, range] : llvm::zip(end->getOperands(), resultRanges)) {
    Value from = buffer(value), to = get(range);
    if (!isAt(from, to))
      copy(end->getLoc(), from, to);
  }
  return success();
}

//===----------------------------------------------------------------------===//
// State
//===----------------------------------------------------------------------===//

void ProgramLowering::findUpdates() {
  for (auto op : func.front().getOps<nn::StateOpInterface>())
    op.forEachStateEffect([&](StringRef name, nn::StateEffect effect) {
      if (effect != nn::StateEffect::Read &&
          effect != nn::StateEffect::Gradient)
        updates[name].push_back(op);
    });
}

bool ProgramLowering::isUsedAfterUpdate(Value value, StringRef name) {
  Operation *update = nullptr; // the first after the value
  for (Operation *op : updates.lookup(name))
    if (!update && value.getDefiningOp()->isBeforeInBlock(op))
      update = op;
  if (!update)
    return false;
  SmallVector<Value> aliases = {value};
  while (!aliases.empty()) {
    for (Operation *user : aliases.pop_back_val().getUsers()) {
      Operation *inBlock = func.front().findAncestorOpInBlock(*user);
      // What a sum adds may not change while it grows.
      bool isAdded = inBlock == update &&
                     isa<nn::AccumulateOp, nn::AccumulateProductOp>(update);
      if (isAdded || (inBlock != update && update->isBeforeInBlock(inBlock)))
        return true;
      if (nn::aliasesOperands(user))
        llvm::append_range(aliases, user->getResults());
    }
  }
  return false;
}

LogicalResult ProgramLowering::lowerRead(nn::ReadOp op) {
  exec::RangeOp range = state.lookup(op.getName());
  if (!range)
    return op.emitError("no parameter or buffer is named ") << op.getNameAttr();
  if (range.getType() != memRefOf(op.getType()))
    return op.emitOpError("reads ")
           << op.getType() << ", but this rank holds " << range.getType();
  Value source = get(range);
  held[op.getValue()] = source;
  // The value is the one of this place; an update must not show through.
  if (isUsedAfterUpdate(op.getValue(), op.getName()))
    copy(op.getLoc(), source, output(op.getValue(), op));
  return success();
}

LogicalResult ProgramLowering::lowerGradient(nn::GradientOp op) {
  exec::RangeOp range = state.gradientOf(op.getName());
  if (!range)
    return op.emitError("no parameter is named ") << op.getNameAttr();
  Value from = buffer(op.getValue()), to = get(range);
  if (!isAt(from, to))
    copy(op.getLoc(), from, to);
  return success();
}

/// Follows names of a value back to what has produced it.
static Value sourceOf(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!nn::aliasesOperands(op))
      break;
    value = op->getOperand(cast<OpResult>(value).getResultNumber());
  }
  return value;
}

/// Whether the value lies in a buffer of the program's own, so in no sum.
static bool liesApart(nn::AccumulateOp op) {
  return ownsBuffer(sourceOf(op.getValue()));
}

/// The ops from `op` on that follow each other, add to several sums, and whose
/// values lie in none: one operation of the runtime adds them all.
static SmallVector<nn::AccumulateOp> runFrom(nn::AccumulateOp op) {
  SmallVector<nn::AccumulateOp> run;
  llvm::SmallPtrSet<Attribute, 8> names;
  for (auto next = op; next && names.insert(next.getNameAttr()).second;
       next = dyn_cast_or_null<nn::AccumulateOp>(next->getNextNode())) {
    bool isApart = liesApart(next);
    if (isApart || run.empty())
      run.push_back(next);
    if (!isApart)
      break;
  }
  return run;
}

LogicalResult ProgramLowering::lowerAccumulate(nn::AccumulateOp op) {
  if (accumulated.contains(op))
    return success();
  SmallVector<Value> sums, values;
  SmallVector<StringAttr> produced;
  SmallVector<nn::AccumulateOp> run = runFrom(op);
  for (nn::AccumulateOp each : run) {
    exec::RangeOp range = state.lookup(each.getName());
    if (!range)
      return each.emitError("no buffer is named ") << each.getNameAttr();
    MemRefType type = range.getMemRefType();
    if (!type.getElementType().isF32() ||
        type.getShape() != each.getValue().getType().getShape())
      return each.emitOpError("adds ")
             << each.getValue().getType() << ", but this rank holds " << type;
    accumulated.insert(each);
    sums.push_back(get(range));
    values.push_back(buffer(each.getValue()));
    dist::OriginAttr origin = dist::originOf(each);
    produced.push_back(origin ? b.getStringAttr(origin.getText())
                              : StringAttr());
  }
  SmallVector<Value> inputs = sums;
  llvm::append_range(inputs, values);
  auto work =
      exec::AccumulateOp::create(b, op.getLoc(), exec::Stream::Compute, inputs,
                                 sums, /*workspaces=*/ValueRange());
  SmallVector<Operation *> ops(run.begin(), run.end());
  nn::setModule(work, nn::commonModule(ops));
  // Of each sum its own, not the first one's.
  work->removeAttr(exec::kProducesAttr);
  exec::setProduced(work, produced);
  return success();
}

LogicalResult ProgramLowering::lowerWrite(nn::WriteOp op) {
  exec::RangeOp range = state.lookup(op.getName());
  if (!range)
    return op.emitError("no buffer is named ") << op.getNameAttr();
  Value from = buffer(op.getValue()), to = get(range);
  if (!isAt(from, to))
    copy(op.getLoc(), from, to);
  return success();
}

LogicalResult ProgramLowering::lowerClear(nn::ClearOp op) {
  for (auto name : op.getNames().getAsRange<FlatSymbolRefAttr>()) {
    exec::RangeOp range = state.lookup(name.getValue());
    if (!range)
      return op.emitError("no buffer is named ") << name;
    exec::FillZeroOp::create(b, op.getLoc(), exec::Stream::Compute,
                             /*inputs=*/ValueRange(), get(range),
                             /*workspaces=*/ValueRange());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// What a kernel that combines blocks reads.
static MemRefType blocksIn(exec::KernelOp ofBlocks) {
  return cast<MemRefType>(ofBlocks.getBody().getArgument(0).getType());
}

void ProgramLowering::launch(const KernelUse &use, Operation *op) {
  SmallVector<Value> inputs = buffers(use.inputs), written;
  for (auto [value, definer, ofBlocks] :
       llvm::zip(use.outputs, use.definers, use.ofBlocks))
    written.push_back(ofBlocks
                          ? alloc(blocksIn(ofBlocks), value, definer, "blocks")
                          : output(value, definer));
  auto work = exec::LaunchOp::create(b, op->getLoc(),
                                     exec::KernelOp(use.kernel).getSymName(),
                                     exec::Stream::Compute, inputs, written);
  setProduced(work, use.outputs, use.definers, use.ofBlocks);
  for (auto [value, definer, ofBlocks, blocks] :
       llvm::zip(use.outputs, use.definers, use.ofBlocks, written)) {
    if (!ofBlocks)
      continue;
    auto sum = exec::LaunchOp::create(
        b, definer->getLoc(), exec::KernelOp(ofBlocks).getSymName(),
        exec::Stream::Compute, blocks, output(value, definer));
    nn::setModule(sum, nn::moduleOf(definer));
    setProduced(sum, value, definer);
  }
}

LogicalResult ProgramLowering::lowerKernel(Operation *op) {
  FailureOr<KernelUse> use = lowerToKernel(op, state.kernels);
  if (failed(use))
    return failure();
  launch(*use, op);
  return success();
}

//===----------------------------------------------------------------------===//
// All ops
//===----------------------------------------------------------------------===//

LogicalResult ProgramLowering::lower(Operation *op) {
  // Constants are part of the kernels that read them.
  if (isa<nn::ConstantOp, nn::SeedOp, func::ReturnOp>(op))
    return success();
  if (auto name = state.recorded.of(op))
    return lowerAsRecorded(op, *name);
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](nn::ReadOp o) { return lowerRead(o); })
      .Case([&](nn::GradientOp o) { return lowerGradient(o); })
      .Case([&](nn::AccumulateOp o) { return lowerAccumulate(o); })
      .Case(
          [&](nn::AccumulateProductOp o) { return lowerAccumulateProduct(o); })
      .Case([&](nn::WriteOp o) { return lowerWrite(o); })
      .Case([&](nn::ClearOp o) { return lowerClear(o); })
      .Case([&](nn::ReshapeOp o) { return lowerReshape(o); })
      .Case([&](nn::RecomputeFromOp o) { return lowerRecompute(o); })
      .Case([&](nn::SliceOp o) { return lowerSlice(o); })
      .Case([&](nn::PadOp o) { return lowerPad(o); })
      .Case([&](nn::ConcatOp o) { return lowerConcat(o); })
      .Case([&](nn::LinearOp o) { return lowerLinear(o); })
      .Case([&](nn::LinearInputGradOp o) { return lowerLinearInputGrad(o); })
      .Case([&](nn::LinearWeightGradOp o) { return lowerLinearWeightGrad(o); })
      .Case([&](nn::MatmulOp o) { return lowerMatmul(o); })
      .Case([&](nn::AdamWOp o) { return lowerAdamW(o); })
      .Case([&](dist::ShardOfOp o) { return lowerShardOf(o); })
      .Case([&](dist::RowsOfShardOp o) { return lowerRowsOfShard(o); })
      .Case([&](dist::AsyncOp o) { return lowerAsync(o); })
      .Case([&](dist::AwaitOp o) { return lowerAwait(o); })
      .Case([&](dist::CollectiveOpInterface o) {
        return lowerCollective(o, exec::Stream::Compute, o->getResults(),
                               /*token=*/nullptr);
      })
      .Case<nn::FusionOp, nn::KernelOpInterface>(
          [&](auto o) { return lowerKernel(o); })
      .Default([](Operation *o) {
        return o->emitOpError("has no lowering to exec");
      });
}

/// exec computes in f32; f64 tensors are for the reference evaluator.
static LogicalResult verifyTypes(func::FuncOp func) {
  auto isF64 = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isF64();
  };
  for (Type type : func.getArgumentTypes())
    if (isF64(type))
      return func.emitError("exec has no f64, but an argument is ") << type;
  WalkResult result = func.walk([&](Operation *op) {
    for (Type type : op->getResultTypes())
      if (isF64(type)) {
        op->emitError("exec has no f64, but a result is ") << type;
        return WalkResult::interrupt();
      }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

/// Floating point operations of one run.
static FailureOr<int64_t> flopsOf(func::FuncOp func) {
  CheckedSize flops = 0;
  func.walk([&](nn::CostOpInterface op) { flops += op.getFlops(); });
  if (!flops.fits(kMaxFlops))
    return func.emitError("needs more than 2^62 floating point operations");
  return flops.get();
}

/// Those of one run that are no second time: neither values that are recomputed
/// in the backward pass, nor what a reverse rule itself computes again.
static int64_t modelFlopsOf(func::FuncOp func) {
  CheckedSize flops = 0;
  func.walk([&](nn::CostOpInterface op) {
    dist::OriginAttr origin = dist::originOf(op);
    if (origin && origin.getPhase() == dist::Phase::Again)
      return;
    flops += op.getModelFlops();
  });
  return flops.saturated();
}

/// Setting a buffer to what it holds is no work.
void ProgramLowering::eraseSelfWrites() {
  llvm::StringMap<Operation *> lastUpdates;
  for (Operation &op : llvm::make_early_inc_range(func.front())) {
    if (auto write = dyn_cast<nn::WriteOp>(op)) {
      auto read = sourceOf(write.getValue()).getDefiningOp<nn::ReadOp>();
      Operation *last = lastUpdates.lookup(write.getName());
      if (read && read.getName() == write.getName() &&
          read.getType() == write.getValue().getType() &&
          !(last && read->isBeforeInBlock(last))) {
        write.erase();
        continue;
      }
    }
    if (auto state = dyn_cast<nn::StateOpInterface>(op))
      state.forEachStateEffect([&](StringRef name, nn::StateEffect effect) {
        if (effect != nn::StateEffect::Read)
          lastUpdates[name] = &op;
      });
  }
}

/// Ops whose results nobody reads do no work.
void ProgramLowering::eraseUnusedOps() {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(func.front())))
    if (op.use_empty() && !op.hasTrait<OpTrait::IsTerminator>() &&
        (isMemoryEffectFree(&op) || isa<nn::RecomputeFromOp>(op)))
      op.erase();
}

void ProgramLowering::eraseUnusedViews() {
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
    if (isa<exec::ViewOp, exec::GetOp>(op) && op.use_empty())
      op.erase();
}

namespace {
/// Work belongs to the module of the op that it is lowered from, and its values
/// are that op's; buffers have labels.
class WorkOrigin : public nn::ModuleScope {
public:
  WorkOrigin(OpBuilder &builder, Operation *op)
      : ModuleScope(builder, nn::moduleOf(op)) {
    if (auto async = dyn_cast<dist::AsyncOp>(op))
      op = async.getInnerOp();
    if (dist::OriginAttr origin = dist::originOf(op))
      produced = builder.getStringAttr(origin.getText());
  }
  void notifyOperationInserted(Operation *op,
                               OpBuilder::InsertPoint previous) override {
    if (!exec::isWork(op))
      return;
    exec::setProduced(op, produced);
    ModuleScope::notifyOperationInserted(op, previous);
  }

private:
  StringAttr produced;
};
} // namespace

FailureOr<exec::ProgramOp> ProgramLowering::run() {
  if (!llvm::hasSingleElement(func.getBody()))
    return func.emitError("a program is one block");
  if (failed(verifyTypes(func)))
    return failure();
  program = exec::ProgramOp::create(b, func.getLoc(), func.getSymNameAttr(),
                                    /*arena=*/IntegerAttr());
  OwningOpRef<exec::ProgramOp> owner(program);
  FailureOr<int64_t> flops = flopsOf(func);
  if (failed(flops))
    return failure();
  program->setAttr(exec::kFlopsAttr, b.getI64IntegerAttr(*flops));
  if (int64_t ofModel = modelFlopsOf(func); ofModel != *flops)
    program->setAttr(exec::kModelFlopsAttr, b.getI64IntegerAttr(ofModel));
  b.setInsertionPointToEnd(&program.getBody().emplaceBlock());
  eraseSelfWrites();
  eraseUnusedOps();
  findUpdates();
  findJoined();
  findParameters();
  if (failed(bindArguments()) || failed(bindResults()))
    return failure();
  stateEffects();
  for (Operation &op : func.front()) {
    WorkOrigin scope(b, &op);
    if (failed(lower(&op)))
      return failure();
  }
  if (failed(lowerReturn()))
    return failure();
  eraseUnusedViews();
  return owner.release();
}
