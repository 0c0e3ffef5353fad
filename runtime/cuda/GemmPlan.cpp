//===- GemmPlan.cpp - Matmuls by cuBLASLt ---------------------------------===//
#include "CudaContext.h"
#include "fsdp/Target/CudaWorkspaces.h"

using namespace fsdp;
using namespace fsdp::rt;

static cudaDataType_t typeOf(DType type) {
  switch (type) {
  case DType::F32:
    return CUDA_R_32F;
  case DType::BF16:
    return CUDA_R_16BF;
  case DType::F64:
    return CUDA_R_64F;
  default:
    throw Error("cuBLASLt: a matmul takes f32, bf16 or f64");
  }
}

/// exec-verify has proved that every operand is aligned to this. Asked when it
/// is needed: the target's facts are made when the library is loaded, too.
static uint32_t operandAlignment() { return uint32_t(kCudaTarget.alignment); }

/// The layout of a row-major matrix, or of a batch of them, as cuBLASLt sees
/// it: column-major with rows and columns exchanged.
static cublasLtMatrixLayout_t layoutOf(DType type, int64_t rows, int64_t cols,
                                       int64_t batch) {
  cublasLtMatrixLayout_t layout;
  require(cublasLtMatrixLayoutCreate(&layout, typeOf(type), uint64_t(cols),
                                     uint64_t(rows), cols),
          "cuBLASLt layout");
  int32_t count = int32_t(batch);
  int64_t stride = rows * cols;
  require(cublasLtMatrixLayoutSetAttribute(
              layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
          "cuBLASLt layout");
  require(cublasLtMatrixLayoutSetAttribute(
              layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
              sizeof stride),
          "cuBLASLt layout");
  return layout;
}

template <typename T>
static void setAttribute(cublasLtMatmulDesc_t operation,
                         cublasLtMatmulDescAttributes_t name, const T &value) {
  require(cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value),
          "cuBLASLt operation");
}

void GemmPlan::describe(const GemmDesc &d) {
  // f32 is computed as f32: TF32 would keep ten bits of the mantissa.
  bool wide = d.in == DType::F64;
  require(cublasLtMatmulDescCreate(
              &operation, wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
              wide ? CUDA_R_64F : CUDA_R_32F),
          "cuBLASLt operation");
  auto transposed = [](bool t) { return t ? CUBLAS_OP_T : CUBLAS_OP_N; };
  setAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA,
               transposed(d.transposeRhs));
  setAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSB,
               transposed(d.transposeLhs));
  if (d.bias) {
    setAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
                 CUBLASLT_EPILOGUE_BIAS);
    setAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, typeOf(d.in));
    // The choice of an algorithm depends on how a bias is aligned, which
    // cuBLASLt reads from its address. This one is aligned as all are, and
    // stands for them until a call has its own.
    setAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                 reinterpret_cast<const void *>(uintptr_t(operandAlignment())));
  }
  first = layoutOf(d.in, d.transposeRhs ? d.n : d.k, d.transposeRhs ? d.k : d.n,
                   d.batch);
  second = layoutOf(d.in, d.transposeLhs ? d.k : d.m,
                    d.transposeLhs ? d.m : d.k, d.batch);
  result = layoutOf(d.out, d.m, d.n, d.batch);
}

/// Partial sums of a split inner dimension stay in the type of the computation;
/// cuBLASLt would also add them in the result's type, which may be bf16.
static constexpr uint32_t kReductions =
    CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;

template <typename T>
static void setAttribute(cublasLtMatmulPreference_t preference,
                         cublasLtMatmulPreferenceAttributes_t name,
                         const T &value) {
  require(cublasLtMatmulPreferenceSetAttribute(preference, name, &value,
                                               sizeof value),
          "cuBLASLt preference");
}

/// What every call of the matmul keeps. Where nothing is said cuBLASLt takes
/// operands to be aligned to 256 bytes.
static void describeCalls(cublasLtMatmulPreference_t preference,
                          uint64_t workspaceBytes) {
  setAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
               workspaceBytes);
  setAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
               kReductions);
  for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    setAttribute(preference, name, operandAlignment());
}

std::string GemmPlan::demands() {
  return "reductions " + std::to_string(kReductions) + ", alignment " +
         std::to_string(operandAlignment());
}

/// Those that work on this GPU: cuBLASLt also lists some that it finds not to.
std::vector<cublasLtMatmulAlgo_t> GemmPlan::candidates() const {
  cublasLtMatmulPreference_t made;
  require(cublasLtMatmulPreferenceCreate(&made), "cuBLASLt preference");
  std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>,
                  decltype(&cublasLtMatmulPreferenceDestroy)>
      preference(made, cublasLtMatmulPreferenceDestroy);
  describeCalls(made, workspaceBytes);
  constexpr int kCandidates = 8;
  cublasLtMatmulHeuristicResult_t found[kCandidates] = {};
  int count = 0;
  require(cublasLtMatmulAlgoGetHeuristic(handle, operation, first, second,
                                         result, result, made, kCandidates,
                                         found, &count),
          "cuBLASLt algorithm");
  std::vector<cublasLtMatmulAlgo_t> usable;
  for (int i = 0; i < count; ++i)
    if (isUsable(found[i]))
      usable.push_back(found[i].algo);
  if (!usable.empty())
    return usable;
  throw Error("cuBLASLt has no algorithm for a matmul of the artifact in " +
              std::to_string(workspaceBytes) + " bytes of workspace");
}

bool GemmPlan::isUsable(const cublasLtMatmulHeuristicResult_t &found) const {
  return found.state == CUBLAS_STATUS_SUCCESS &&
         found.workspaceSize <= workspaceBytes;
}

GemmPlan::GemmPlan(cublasLtHandle_t handle, const GemmDesc &desc)
    : handle(handle), workspaceBytes(uint64_t(desc.workspace)),
      accumulate(desc.accumulate) {
  describe(desc);
  algorithm = candidates().front();
}

GemmPlan::~GemmPlan() {
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      cublasLtMatrixLayoutDestroy(layout);
  if (operation)
    cublasLtMatmulDescDestroy(operation);
}

void GemmPlan::shareAlgorithm() { broadcast(&algorithm, sizeof algorithm); }

void GemmPlan::checkAlgorithm() const {
  cublasLtMatmulHeuristicResult_t found{};
  require(cublasLtMatmulAlgoCheck(handle, operation, first, second, result,
                                  result, &algorithm, &found),
          "this GPU cannot use rank 0's matmul algorithm");
  if (!isUsable(found))
    throw Error("this GPU cannot use rank 0's matmul algorithm in " +
                std::to_string(workspaceBytes) + " bytes of workspace");
}

cublasStatus_t GemmPlan::issue(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias,
                               Ptr out, Ptr workspace) const {
  if (bias)
    check(cublasLtMatmulDescSetAttribute(
              operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof bias),
          "gemm");
  // The scalars of an f64 matmul are f64.
  const float one = 1, zero = 0;
  const double wideOne = 1, wideZero = 0;
  cudaDataType_t scale = CUDA_R_32F;
  check(cublasLtMatmulDescGetAttribute(operation,
                                       CUBLASLT_MATMUL_DESC_SCALE_TYPE, &scale,
                                       sizeof scale, nullptr),
        "gemm");
  bool wide = scale == CUDA_R_64F;
  const void *alpha = wide ? static_cast<const void *>(&wideOne) : &one;
  const void *none = wide ? static_cast<const void *>(&wideZero) : &zero;
  const void *beta = accumulate ? alpha : none;
  return cublasLtMatmul(handle, operation, alpha, rhs, first, lhs, second, beta,
                        out, result, out, result, &algorithm,
                        workspaceBytes > 0 ? workspace : nullptr,
                        workspaceBytes, stream);
}

void GemmPlan::run(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias, Ptr out,
                   Ptr workspace) const {
  check(issue(stream, lhs, rhs, bias, out, workspace), "gemm");
}

bool GemmPlan::tryRun(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias, Ptr out,
                      Ptr workspace) const {
  return issue(stream, lhs, rhs, bias, out, workspace) == CUBLAS_STATUS_SUCCESS;
}

int64_t rt::gemmWorkspaceBytes(const GemmDesc &, int) {
  return cuda::kGemmWorkspaceBytes;
}
