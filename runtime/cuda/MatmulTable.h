//===- MatmulTable.h - Algorithms of matmuls, kept for a GPU ----*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_MATMULTABLE_H
#define FSDP_RUNTIME_CUDA_MATMULTABLE_H

#include "CudaContext.h"
#include "fsdp/Support/AtomicFile.h"
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

namespace fsdp::rt {

/// Which algorithm each matmul takes on one kind of GPU with one version of
/// cuBLASLt: a file of a cache folder that all artifacts share.
///
/// An algorithm decides bits. So the key is the matmul alone and not the plan
/// or the artifact that contains it, and an entry is never replaced: two plans
/// of a model multiply alike, also when they are compiled and run on different
/// days.
class MatmulTable {
public:
  using Algorithm = cublasLtMatmulAlgo_t;

  /// What else a row says of the timing; for people.
  struct Timing {
    double seconds, secondsOfFirst; // infinite: not timed
    size_t candidates;
  };

  MatmulTable(const std::string &folder, std::string device);

  /// "FOLDER/matmuls-NVIDIA_H200-130200.json".
  const std::string &path() const { return file; }

  /// Reads the file anew. None, or one of another GPU, another version or
  /// other demands on algorithms, is an empty table. Throws fsdp::Error if the
  /// file is none of this kind.
  void read();

  /// Whose the file is, if of another GPU or version than its name says; empty:
  /// it is not.
  const std::string &others() const { return whose; }

  std::optional<Algorithm> find(const GemmDesc &desc) const;
  void add(const GemmDesc &desc, const Algorithm &algorithm,
           const Timing &timing);

  /// Writes all of it; the caller commits.
  void write(AtomicFile &to) const;

private:
  Error wrong(const std::string &problem) const;
  /// The file's object; nothing if the file is not of this GPU and library.
  std::optional<nlohmann::json> parse();
  void addRow(const nlohmann::json &row, size_t number);

  std::string file, device, whose;
  /// By the text of the matmul, so that the file's order is always the same.
  std::map<std::string, nlohmann::ordered_json> rows;
};

/// Sixteen hexadecimal digits of matmuls and their algorithms: runs whose
/// digests are equal multiply alike.
std::string digestOf(const GemmDesc *descs,
                     const std::vector<cublasLtMatmulAlgo_t> &algorithms);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_MATMULTABLE_H
