//===- Gemm.cpp - Matmuls by cuBLASLt -------------------------------------===//
#include "CudaContext.h"
#include "fsdp/Runtime/CudaWorkspaces.h"

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
  }
  first = layoutOf(d.in, d.transposeRhs ? d.n : d.k, d.transposeRhs ? d.k : d.n,
                   d.batch);
  second = layoutOf(d.in, d.transposeLhs ? d.k : d.m,
                    d.transposeLhs ? d.m : d.k, d.batch);
  result = layoutOf(d.out, d.m, d.n, d.batch);
}

/// The compiler aligns ranges of the arena to this.
static constexpr uint32_t kArenaAlignment = 64;

/// What every call of the matmul keeps. Where nothing is said cuBLASLt takes
/// operands to be aligned to 256 bytes.
static cublasStatus_t describeCalls(cublasLtMatmulPreference_t preference) {
  uint64_t bytes = cuda::kGemmWorkspaceBytes;
  cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
      preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &bytes,
      sizeof bytes);
  for (auto name : {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    if (status == CUBLAS_STATUS_SUCCESS)
      status = cublasLtMatmulPreferenceSetAttribute(
          preference, name, &kArenaAlignment, sizeof kArenaAlignment);
  return status;
}

void GemmPlan::choose() {
  cublasLtMatmulPreference_t preference;
  require(cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt preference");
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  cublasStatus_t status = describeCalls(preference);
  if (status == CUBLAS_STATUS_SUCCESS)
    status =
        cublasLtMatmulAlgoGetHeuristic(handle, operation, first, second, result,
                                       result, preference, 1, &found, &count);
  cublasLtMatmulPreferenceDestroy(preference);
  require(status, "cuBLASLt algorithm");
  if (count == 0)
    throw Error("cuBLASLt has no algorithm for a matmul of the artifact");
  algorithm = found.algo;
}

GemmPlan::GemmPlan(cublasLtHandle_t handle, const GemmDesc &desc)
    : handle(handle) {
  if (desc.workspace != 0 && desc.workspace < cuda::kGemmWorkspaceBytes)
    throw Error("the artifact has too little workspace for cuBLASLt; compile "
                "it again");
  describe(desc);
  choose();
}

GemmPlan::~GemmPlan() {
  for (cublasLtMatrixLayout_t layout : {first, second, result})
    if (layout)
      cublasLtMatrixLayoutDestroy(layout);
  if (operation)
    cublasLtMatmulDescDestroy(operation);
}

void GemmPlan::agreeOnAlgorithm() {
  broadcast(&algorithm, sizeof algorithm);
  cublasLtMatmulHeuristicResult_t found{};
  require(cublasLtMatmulAlgoCheck(handle, operation, first, second, result,
                                  result, &algorithm, &found),
          "this GPU cannot use rank 0's matmul algorithm");
}

void GemmPlan::run(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias, Ptr out,
                   Ptr workspace) const {
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
  const void *beta = wide ? static_cast<const void *>(&wideZero) : &zero;
  check(cublasLtMatmul(handle, operation, alpha, rhs, first, lhs, second, beta,
                       out, result, out, result, &algorithm, workspace,
                       cuda::kGemmWorkspaceBytes, stream),
        "gemm");
}

int64_t rt::gemmWorkspaceBytes(const GemmDesc &, int) {
  return cuda::kGemmWorkspaceBytes;
}
