//===- TraceModel.cpp - From the name of a model to its graph -------------===//
#include "fsdp/Families/TraceModel.h"
#include "dialects/NN/NN.h"
#include "fsdp/Families/DecoderModel.h"
#include "fsdp/Families/MlpModel.h"
#include "fsdp/Trace/Trace.h"
#include <memory>

using namespace mlir;

namespace fsdp {

/// Builds the model that `spec` describes.
static llvm::Expected<std::unique_ptr<model::Model>>
createModel(const ModelSpec &spec, int64_t batch, int64_t seqLen) {
  if (batch < 1 || batch > kMaxDimension)
    return llvm::createStringError(
        "%s: batch must be between 1 and %lld, not %lld", spec.name.c_str(),
        static_cast<long long>(kMaxDimension), static_cast<long long>(batch));
  if (const auto *mlp = std::get_if<MlpConfig>(&spec.config))
    return std::make_unique<model::Mlp>(*mlp, batch);
  const auto &decoder = std::get<DecoderConfig>(spec.config);
  if (seqLen < 1 || seqLen > decoder.maxSeqLen)
    return llvm::createStringError(
        "%s: the sequence length must be between 1 and the model's "
        "max_seq_len = %lld, not %lld",
        spec.name.c_str(), static_cast<long long>(decoder.maxSeqLen),
        static_cast<long long>(seqLen));
  return std::make_unique<model::Decoder>(decoder, batch, seqLen);
}

/// Every tensor that persists, and the parameters together, have bytes that can
/// be counted. Known before an op is built; what depends on the batch is left
/// to the ops' verifiers.
static llvm::Error verifyBytes(const model::Model &model, StringRef name) {
  std::string problem;
  CheckedSize total = 0;
  auto measure = [&](const model::Variable &variable) {
    CheckedSize bytes = productOf(variable.shape) * int64_t(sizeof(float));
    total += bytes;
    if (bytes.fits(kMaxTensorBytes) || !problem.empty())
      return;
    llvm::raw_string_ostream os(problem);
    os << variable.name << ": ";
    llvm::interleave(variable.shape, os, " x ");
    os << " x f32 are more than 2^56 bytes";
  };
  model.visit(measure, measure);
  if (problem.empty() && !total.fits(kMaxArenaBytes))
    problem = "the parameters together are more than 2^62 bytes";
  if (problem.empty())
    return llvm::Error::success();
  return llvm::createStringError(name + ": " + problem);
}

/// The family and the fields of `spec`, as nn.model states them.
static DictionaryAttr modelAttr(Builder &builder, const ModelSpec &spec) {
  NamedAttrList attributes;
  attributes.append(nn::kFamilyKey,
                    builder.getStringAttr(getModelFamily(spec)));
  auto toAttr = [&](auto value) -> Attribute {
    using T = decltype(value);
    if constexpr (std::is_same_v<T, bool>)
      return builder.getBoolAttr(value);
    else if constexpr (std::is_same_v<T, double>)
      return builder.getF64FloatAttr(value);
    else if constexpr (std::is_same_v<T, std::string>)
      return builder.getStringAttr(value);
    else
      return builder.getI64IntegerAttr(value);
  };
  for (const ModelField &field : getModelFields(spec))
    attributes.append(field.key, std::visit(toAttr, field.value));
  return attributes.getDictionary(builder.getContext());
}

llvm::Expected<OwningOpRef<ModuleOp>> traceModel(MLIRContext &context,
                                                 const ModelSpec &spec,
                                                 const TraceOptions &options) {
  if (llvm::Error error = verifyModel(spec))
    return error;
  auto model = createModel(spec, options.batch ? options.batch : spec.batch,
                           options.seqLen ? options.seqLen : spec.seqLen);
  if (!model)
    return model.takeError();
  if (llvm::Error error = verifyBytes(**model, spec.name))
    return error;
  OwningOpRef<ModuleOp> module = traceModel(context, **model, spec.name);
  Builder builder(&context);
  (*module)->setAttr(nn::kModelAttr, modelAttr(builder, spec));
  return module;
}

} // namespace fsdp
