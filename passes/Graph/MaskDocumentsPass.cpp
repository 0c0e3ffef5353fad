//===- MaskDocumentsPass.cpp - Documents of a row do not see each other ---===//
//
// See GraphPasses.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/NN.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_MASKDOCUMENTS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

/// [batch, q_len] of an attention.
static ArrayRef<int64_t> batchAndQueries(nn::AttentionOp attention) {
  auto query = cast<RankedTensorType>(attention.getQuery().getType());
  return query.getShape().take_front(2);
}

namespace {

struct MaskDocumentsPass
    : fsdp::impl::MaskDocumentsBase<MaskDocumentsPass> {
  void runOnOperation() override {
    bool isMasked = false;
    for (auto program : getOperation().getOps<func::FuncOp>()) {
      SmallVector<nn::AttentionOp> attentions;
      program.walk([&](nn::AttentionOp attention) {
        if (attention.getCausal())
          attentions.push_back(attention);
      });
      if (attentions.empty())
        continue;
      if (failed(mask(program, attentions)))
        return signalPassFailure();
      isMasked = true;
    }
    if (isMasked)
      return;
    getOperation().emitError("has no causal attention whose documents could "
                             "be kept apart; leave training.document_mask out");
    signalPassFailure();
  }

  static LogicalResult mask(func::FuncOp program,
                            ArrayRef<nn::AttentionOp> attentions) {
    ArrayRef<int64_t> rows = batchAndQueries(attentions.front());
    for (nn::AttentionOp attention : attentions) {
      if (attention.getStarts())
        return attention.emitOpError("has starts of documents already");
      if (batchAndQueries(attention) != rows)
        return attention.emitOpError("has queries of other rows than the "
                                     "first attention of its program");
    }
    Builder builder(program.getContext());
    auto type = RankedTensorType::get(rows, builder.getI32Type());
    auto name = builder.getNamedAttr(
        nn::kNameAttr, builder.getStringAttr(range_name::kDocumentStarts));
    unsigned number = program.getNumArguments();
    if (failed(program.insertArgument(number, type,
                                      builder.getDictionaryAttr(name),
                                      program.getLoc())))
      return failure();
    for (nn::AttentionOp attention : attentions)
      attention.getStartsMutable().assign(program.getArgument(number));
    return success();
  }
};

} // namespace
