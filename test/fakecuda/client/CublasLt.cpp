//===- CublasLt.cpp - Matmuls, handed to the device as GemmDesc -----------===//
//
// Descriptors are copied at the call of cublasLtMatmul. An algorithm is a hash
// of the product that it was chosen for, so that one used for another product,
// or with less workspace or alignment than its choice assumed, is found.
//
// All algorithms of a product have the same bits and take the same time, unless
// FSDP_FAKECUDA_FASTEST is "first" or "other": then all but the first give
// another last bit, and which of them is fast is as it says.
//
//===----------------------------------------------------------------------===//
#include "Client.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <cublasLt.h>

using namespace fsdp;
using namespace fsdp::fake;

namespace {

struct Layout {
  cudaDataType_t type;
  uint64_t rows, cols;
  int64_t leading;
  int64_t stride = 0;
  int32_t batch = 1;
};

struct Operation {
  cublasComputeType_t compute;
  cudaDataType_t scale;
  cublasOperation_t transposeA = CUBLAS_OP_N, transposeB = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void *bias = nullptr;
  cudaDataType_t biasType = CUDA_R_32F;
};

/// The manual's defaults.
struct Preference {
  uint64_t workspace = 0;
  uint32_t alignment[4] = {256, 256, 256, 256}; // of A, B, C and D
  uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
};

/// What cublasLtMatmulAlgo_t holds here.
struct Algorithm {
  static constexpr uint64_t kMagic = 0x6673647066616b65;
  uint64_t magic, product, workspace;
  uint32_t alignment[4];
  uint32_t biasAlignment;
  uint32_t number; // several do the same
};
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t::data));

Layout &of(cublasLtMatrixLayout_t layout) {
  return *reinterpret_cast<Layout *>(layout);
}
Operation &of(cublasLtMatmulDesc_t operation) {
  return *reinterpret_cast<Operation *>(operation);
}
Preference &of(cublasLtMatmulPreference_t preference) {
  return *reinterpret_cast<Preference *>(preference);
}

} // namespace

static cublasStatus_t refuse(const char *what) {
  std::fprintf(stderr, "fakecuda: cuBLASLt: %s\n", what);
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

/// Sets one attribute from the caller's bytes.
template <typename T>
static cublasStatus_t set(T &attribute, const void *value, size_t bytes) {
  if (bytes != sizeof attribute)
    return refuse("an attribute of another size");
  std::memcpy(&attribute, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

extern "C" cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  static char one;
  *handle = reinterpret_cast<cublasLtHandle_t>(&one);
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" const char *cublasLtGetStatusString(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS)
    return "success";
  if (status == CUBLAS_STATUS_EXECUTION_FAILED)
    return Client::get().lastText().c_str();
  return "the stand-in cuBLASLt refuses this";
}

extern "C" cublasStatus_t
cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, cudaDataType type,
                           uint64_t rows, uint64_t cols, int64_t leading) {
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(
      new Layout{type, rows, cols, leading});
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t
cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  delete &of(layout);
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t name,
                                 const void *value, size_t bytes) {
  switch (name) {
  case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
    return set(of(layout).batch, value, bytes);
  case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
    return set(of(layout).stride, value, bytes);
  default:
    return refuse("an unknown attribute of a layout");
  }
}

extern "C" cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                                   cublasComputeType_t compute,
                                                   cudaDataType_t scale) {
  *desc = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{compute, scale});
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  delete &of(desc);
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t name,
                               const void *value, size_t bytes) {
  switch (name) {
  case CUBLASLT_MATMUL_DESC_TRANSA:
    return set(of(desc).transposeA, value, bytes);
  case CUBLASLT_MATMUL_DESC_TRANSB:
    return set(of(desc).transposeB, value, bytes);
  case CUBLASLT_MATMUL_DESC_EPILOGUE:
    return set(of(desc).epilogue, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
    return set(of(desc).bias, value, bytes);
  case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
    return set(of(desc).biasType, value, bytes);
  default:
    return refuse("an unknown attribute of a matmul");
  }
}
extern "C" cublasStatus_t
cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t name, void *value,
                               size_t bytes, size_t *) {
  if (name != CUBLASLT_MATMUL_DESC_SCALE_TYPE || bytes != sizeof of(desc).scale)
    return refuse("only the scale type of a matmul can be asked for");
  std::memcpy(value, &of(desc).scale, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

extern "C" cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  delete &of(preference);
  return CUBLAS_STATUS_SUCCESS;
}
extern "C" cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                     cublasLtMatmulPreferenceAttributes_t name,
                                     const void *value, size_t bytes) {
  Preference &p = of(preference);
  switch (name) {
  case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
    return set(p.workspace, value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    return set(p.alignment[0], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    return set(p.alignment[1], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    return set(p.alignment[2], value, bytes);
  case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
    return set(p.alignment[3], value, bytes);
  case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
    return set(p.reductions, value, bytes);
  default:
    return refuse("an unknown preference");
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

static bool typeOf(cudaDataType_t type, rt::DType &result) {
  switch (type) {
  case CUDA_R_32F:
    result = rt::DType::F32;
    return true;
  case CUDA_R_16BF:
    result = rt::DType::BF16;
    return true;
  case CUDA_R_64F:
    result = rt::DType::F64;
    return true;
  default:
    return false;
  }
}

static bool isDense(const Layout &l) {
  return l.leading == int64_t(l.rows) &&
         (l.batch == 1 || l.stride == int64_t(l.rows * l.cols));
}

/// The row-major product out = lhs rhs of a column-major D = A B: B is lhs and
/// A is rhs, seen as their transposes.
static const char *productOf(const Operation &o, const Layout &a,
                             const Layout &b, const Layout &d,
                             rt::GemmDesc &desc) {
  bool transposeA = o.transposeA == CUBLAS_OP_T;
  bool transposeB = o.transposeB == CUBLAS_OP_T;
  desc.batch = d.batch;
  desc.m = int64_t(d.cols);
  desc.n = int64_t(d.rows);
  desc.k = int64_t(transposeA ? a.rows : a.cols);
  desc.transposeLhs = transposeB;
  desc.transposeRhs = transposeA;
  desc.bias = o.epilogue == CUBLASLT_EPILOGUE_BIAS;
  bool fits = int64_t(transposeA ? a.cols : a.rows) == desc.n &&
              int64_t(transposeB ? b.cols : b.rows) == desc.k &&
              int64_t(transposeB ? b.rows : b.cols) == desc.m &&
              a.batch == d.batch && b.batch == d.batch;
  if (!fits)
    return "a product of sizes that do not fit";
  if (!isDense(a) || !isDense(b) || !isDense(d))
    return "a matrix that is not dense";
  if (a.type != b.type || !typeOf(a.type, desc.in) ||
      !typeOf(d.type, desc.out) || (desc.bias && o.biasType != a.type))
    return "a product of types that no program has";
  bool isWide = a.type == CUDA_R_64F;
  if (o.compute != (isWide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F) ||
      o.scale != (isWide ? CUDA_R_64F : CUDA_R_32F))
    return "a product computed in another type";
  if (!desc.bias && o.epilogue != CUBLASLT_EPILOGUE_DEFAULT)
    return "an unknown epilogue";
  return nullptr;
}

static uint64_t hashOf(const rt::GemmDesc &d) {
  uint64_t hash = 14695981039346656037u;
  for (int64_t value : {d.batch, d.m, d.n, d.k, int64_t(d.transposeLhs),
                        int64_t(d.transposeRhs), int64_t(d.bias), int64_t(d.in),
                        int64_t(d.out)})
    hash = (hash ^ uint64_t(value)) * 1099511628211u;
  return hash;
}

/// Null, or what would let cuBLASLt choose badly.
static const char *badChoice(const Operation &o, const Preference &p) {
  if (p.reductions & ~uint32_t(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE))
    return "an algorithm that may round partial sums to the result's type";
  if (o.epilogue == CUBLASLT_EPILOGUE_BIAS && !o.bias)
    return "an algorithm for a bias whose alignment is not known";
  return nullptr;
}

/// The largest power of two, up to 256, that divides the address.
static uint32_t alignmentOf(const void *address) {
  uint64_t bits = uint64_t(reinterpret_cast<uintptr_t>(address)) | 256;
  return uint32_t(bits & -bits);
}

static Algorithm choose(const rt::GemmDesc &desc, const Operation &o,
                        const Preference &p) {
  Algorithm chosen{Algorithm::kMagic, hashOf(desc), p.workspace, {}, 1, 0};
  std::memcpy(chosen.alignment, p.alignment, sizeof chosen.alignment);
  if (desc.bias)
    chosen.biasAlignment = alignmentOf(o.bias);
  return chosen;
}

extern "C" cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t operation, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int count,
    cublasLtMatmulHeuristicResult_t results[], int *found) {
  rt::GemmDesc desc{};
  if (const char *error = productOf(of(operation), of(a), of(b), of(d), desc))
    return refuse(error);
  if (c != d || count < 1)
    return refuse("a product that adds to another matrix");
  if (const char *error = badChoice(of(operation), of(preference)))
    return refuse(error);
  // Where there is room for it, the first is one that does not work here.
  *found = std::min(count, 3);
  for (int i = 0; i < *found; ++i) {
    Algorithm algorithm = choose(desc, of(operation), of(preference));
    algorithm.number = uint32_t(i);
    results[i] = {};
    bool works = i > 0 || *found == 1;
    results[i].state =
        works ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
    if (!works)
      continue;
    std::memcpy(results[i].algo.data, &algorithm, sizeof algorithm);
    results[i].workspaceSize = algorithm.workspace;
  }
  return CUBLAS_STATUS_SUCCESS;
}

/// Null, or why this is no algorithm for the product.
static const char *mismatch(const cublasLtMatmulAlgo_t *given,
                            const rt::GemmDesc &desc, Algorithm &algorithm) {
  std::memcpy(&algorithm, given->data, sizeof algorithm);
  if (algorithm.magic != Algorithm::kMagic)
    return "an algorithm that was never chosen";
  if (algorithm.product != hashOf(desc))
    return "an algorithm that was chosen for another product";
  return nullptr;
}

extern "C" cublasStatus_t
cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                        cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d,
                        const cublasLtMatmulAlgo_t *given,
                        cublasLtMatmulHeuristicResult_t *result) {
  rt::GemmDesc desc{};
  Algorithm algorithm;
  const char *error = productOf(of(operation), of(a), of(b), of(d), desc);
  if (!error)
    error = mismatch(given, desc, algorithm);
  if (error)
    return refuse(error);
  *result = {};
  result->algo = *given;
  result->workspaceSize = algorithm.workspace;
  return CUBLAS_STATUS_SUCCESS;
}

//===----------------------------------------------------------------------===//
// The call
//===----------------------------------------------------------------------===//

/// True if the scalar, of the type of the product's scale, is `value`.
static bool isScalar(const void *scalar, cudaDataType_t type, double value) {
  return type == CUDA_R_64F ? *static_cast<const double *>(scalar) == value
                            : *static_cast<const float *>(scalar) == value;
}

/// Null, or what the algorithm's choice assumed and the call does not keep.
static const char *brokenPromise(const Algorithm &algorithm,
                                 const fake::Gemm &g) {
  if (g.workspaceBytes > 0 && !g.workspace)
    return "a matmul with workspace bytes and no workspace";
  if (g.workspaceBytes < algorithm.workspace)
    return "a matmul with less workspace than its algorithm was chosen with";
  // A is rhs and B is lhs; C and D are the result.
  const uint64_t pointers[] = {g.rhs, g.lhs, g.out, g.out};
  for (int i = 0; i < 4; ++i)
    if (pointers[i] % algorithm.alignment[i] != 0)
      return "a matmul with less alignment than its algorithm was chosen with";
  if (g.bias % algorithm.biasAlignment != 0)
    return "a bias with less alignment than its algorithm was chosen with";
  return nullptr;
}

extern "C" cublasStatus_t
cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
               const void *alpha, const void *a, cublasLtMatrixLayout_t la,
               const void *b, cublasLtMatrixLayout_t lb, const void *beta,
               const void *c, cublasLtMatrixLayout_t lc, void *d,
               cublasLtMatrixLayout_t ld, const cublasLtMatmulAlgo_t *given,
               void *workspace, size_t workspaceBytes, cudaStream_t stream) {
  // A plan that keeps the algorithm of the matmul before.
  static const cublasLtMatmulAlgo_t *previous = given;
  if (Client::get().isPlanted("stale-algorithm"))
    given = previous;
  previous = given;
  const Operation &o = of(operation);
  fake::Gemm g{};
  Algorithm algorithm;
  const char *error = productOf(o, of(la), of(lb), of(ld), g.desc);
  if (!error)
    error = mismatch(given, g.desc, algorithm);
  g.desc.accumulate = isScalar(beta, o.scale, 1);
  bool isPlain = g.desc.accumulate || isScalar(beta, o.scale, 0);
  if (!error &&
      (!isScalar(alpha, o.scale, 1) || !isPlain || c != d || lc != ld))
    error = "a product that is scaled or added to another matrix";
  if (!error && g.desc.accumulate && g.desc.out == rt::DType::BF16)
    error = "a product that is added to a sum in bf16";
  if (!error && g.desc.bias && !o.bias)
    error = "a product with a bias that is nowhere";
  g.stream = numberOf(stream);
  g.lhs = addressOf(b);
  g.rhs = addressOf(a);
  g.bias = g.desc.bias ? addressOf(o.bias) : 0;
  g.out = addressOf(d);
  g.workspace = addressOf(workspace);
  g.workspaceBytes = workspaceBytes;
  if (const char *fastest = std::getenv("FSDP_FAKECUDA_FASTEST")) {
    g.isOther = algorithm.number != 1;
    g.isSlow = g.isOther != (std::strcmp(fastest, "other") == 0);
  }
  if (!error)
    error = brokenPromise(algorithm, g);
  if (error)
    return refuse(error);
  return Client::get().send(Call::Gemm, g) == cudaSuccess
             ? CUBLAS_STATUS_SUCCESS
             : CUBLAS_STATUS_EXECUTION_FAILED;
}
extern "C" size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
