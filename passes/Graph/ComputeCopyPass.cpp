//===- ComputeCopyPass.cpp - Parameters kept in the type of compute -------===//
//
// See GraphPasses.td.
//
//===----------------------------------------------------------------------===//
#include "Declarations.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/NN.h"
#include "fsdp/Support/RangeNames.h"
#include "passes/Passes.h"
#include "llvm/ADT/MapVector.h"

namespace fsdp {
#define GEN_PASS_DEF_COMPUTECOPY
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// A parameter's value in bf16.
static bool isNarrowed(Operation *user) {
  auto cast = dyn_cast<nn::CastOp>(user);
  return cast && cast.getType().getElementType().isBF16();
}

namespace {

/// A parameter that programs read in bf16.
struct Narrowed {
  nn::ParameterOp parameter;
  SmallVector<nn::CastOp> casts;
  RankedTensorType wide, narrow; // of a rank
  FlatSymbolRefAttr copy;
};

struct ComputeCopyPass : fsdp::impl::ComputeCopyBase<ComputeCopyPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (module.lookupSymbol(range_name::kCopyParameters)) {
      module.emitError("has a program @")
          << range_name::kCopyParameters << " already";
      return signalPassFailure();
    }
    findNarrowed();
    if (narrowed.empty())
      return;
    for (auto &[name, of] : narrowed) {
      declare(of);
      readCopies(of);
    }
    SmallVector<nn::AdamWOp> updates;
    module.walk([&](nn::AdamWOp update) { updates.push_back(update); });
    for (nn::AdamWOp update : updates)
      writeCopies(update);
    createProgram();
  }

  void findNarrowed() {
    narrowed.clear();
    SymbolTable symbols(getOperation());
    getOperation().walk([&](nn::ReadOp read) {
      auto parameter = symbols.lookup<nn::ParameterOp>(read.getName());
      if (!parameter)
        return;
      for (Operation *user : read->getUsers()) {
        if (!isNarrowed(user))
          continue;
        auto cast = llvm::cast<nn::CastOp>(user);
        Narrowed &of = narrowed[parameter.getSymNameAttr()];
        of.parameter = parameter;
        of.wide = llvm::cast<RankedTensorType>(read.getType());
        of.narrow = cast.getType();
        of.casts.push_back(cast);
      }
    });
  }

  /// A buffer that begins with zeros: the runtime fills it from the parameter,
  /// which every rank has first.
  void declare(Narrowed &of) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(lastDeclaration(getOperation()));
    RankedTensorType type = of.parameter.getTensorType();
    auto buffer = nn::BufferOp::create(
        builder, of.parameter.getLoc(),
        (of.parameter.getSymName() + range_name::kComputeCopySuffix).str(),
        type.clone(of.narrow.getElementType()),
        nn::ZerosAttr::get(&getContext()));
    buffer->setAttr(nn::kComputeCopyOfAttr,
                    FlatSymbolRefAttr::get(of.parameter.getSymNameAttr()));
    if (Attribute placement = of.parameter->getAttr(dist::kPlacementAttr))
      buffer->setAttr(dist::kPlacementAttr, placement);
    of.copy = FlatSymbolRefAttr::get(buffer.getSymNameAttr());
  }

  void readCopies(const Narrowed &of) {
    for (nn::CastOp cast : of.casts) {
      auto read = cast.getInput().getDefiningOp<nn::ReadOp>();
      OpBuilder builder(read);
      nn::ModuleScope scope(builder, nn::moduleOf(read));
      cast.replaceAllUsesWith(
          nn::ReadOp::create(builder, cast.getLoc(), cast.getType(), of.copy)
              .getValue());
      cast.erase();
      if (read->use_empty())
        read.erase();
    }
  }

  /// Splits an update where some of its parameters are read in f32: these have
  /// no copy.
  void writeCopies(nn::AdamWOp update) {
    SmallVector<unsigned> with, without;
    for (auto [i, name] : llvm::enumerate(update.getParameters()))
      (narrowed.contains(llvm::cast<FlatSymbolRefAttr>(name).getAttr())
           ? with
           : without)
          .push_back(i);
    if (with.empty())
      return;
    OpBuilder builder(update);
    nn::ModuleScope scope(builder, nn::moduleOf(update));
    if (!without.empty())
      create(builder, update, without, /*hasCopies=*/false);
    create(builder, update, with, /*hasCopies=*/true);
    update.erase();
  }

  void create(OpBuilder &builder, nn::AdamWOp update, ArrayRef<unsigned> which,
              bool hasCopies) {
    auto chosen = [&](ArrayAttr all) {
      return builder.getArrayAttr(llvm::map_to_vector(
          which, [&](unsigned i) -> Attribute { return all[i]; }));
    };
    SmallVector<Attribute> copies;
    SmallVector<Value> gradients;
    for (unsigned i : which) {
      auto name = llvm::cast<FlatSymbolRefAttr>(update.getParameters()[i]);
      if (hasCopies)
        copies.push_back(narrowed[name.getAttr()].copy);
      gradients.push_back(update.getGradients()[i]);
    }
    nn::AdamWOp::create(
        builder, update.getLoc(), chosen(update.getParameters()),
        chosen(update.getFirstMoments()), chosen(update.getSecondMoments()),
        hasCopies ? builder.getArrayAttr(copies) : ArrayAttr(), gradients,
        update.getLr(), update.getStep(), update.getCoefficient(),
        update.getBeta1Attr(), update.getBeta2Attr(), update.getEpsAttr(),
        update.getWeightDecayAttr());
  }

  /// The program that makes copies of parameters that somebody else has
  /// written.
  void createProgram() {
    OpBuilder builder(&getContext());
    builder.setInsertionPointToEnd(getOperation().getBody());
    Location location =
        NameLoc::get(builder.getStringAttr(range_name::kCopyParameters));
    auto program =
        func::FuncOp::create(builder, location, range_name::kCopyParameters,
                             builder.getFunctionType({}, {}));
    program->setAttr(dist::kLocalAttr, builder.getUnitAttr());
    builder.setInsertionPointToEnd(program.addEntryBlock());
    for (auto &[name, of] : narrowed) {
      Location at = of.parameter.getLoc();
      Value wide = nn::ReadOp::create(builder, at, of.wide,
                                      FlatSymbolRefAttr::get(name));
      Value narrow = nn::CastOp::create(builder, at, of.narrow, wide);
      nn::WriteOp::create(builder, at, of.copy, narrow);
    }
    func::ReturnOp::create(builder, location);
  }

  llvm::MapVector<StringAttr, Narrowed> narrowed;
};

} // namespace
