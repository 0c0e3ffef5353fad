//===- MatmulTable.cpp - Algorithms of matmuls, kept for a GPU ------------===//
#include "MatmulTable.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Text.h"
#include <cctype>
#include <cmath>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::rt;

using Json = nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Matmuls and algorithms as text
//===----------------------------------------------------------------------===//

/// What makes a matmul another one.
static Json keyOf(const GemmDesc &d) {
  return {{"batch", d.batch},
          {"m", d.m},
          {"n", d.n},
          {"k", d.k},
          {"transposed", {d.transposeLhs, d.transposeRhs}},
          {"bias", d.bias},
          {"adds", d.accumulate},
          {"types", {int(d.in), int(d.out)}},
          {"workspace", d.workspace}};
}

/// The order of the keys of an object is not part of its text.
static std::string textOf(const nlohmann::json &key) { return key.dump(); }

static std::string hexOf(const cublasLtMatmulAlgo_t &algorithm) {
  std::string text;
  for (uint64_t word : algorithm.data)
    text += format("%016llx", static_cast<unsigned long long>(word));
  return text;
}

static std::optional<cublasLtMatmulAlgo_t>
algorithmOf(const std::string &text) {
  cublasLtMatmulAlgo_t algorithm{};
  constexpr size_t kDigits = 16;
  if (text.size() != std::size(algorithm.data) * kDigits ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos)
    return std::nullopt;
  for (size_t i = 0; i < std::size(algorithm.data); ++i)
    algorithm.data[i] =
        std::stoull(text.substr(i * kDigits, kDigits), nullptr, 16);
  return algorithm;
}

std::string rt::digestOf(const GemmDesc *descs,
                         const std::vector<cublasLtMatmulAlgo_t> &algorithms) {
  std::string text;
  for (size_t i = 0; i < algorithms.size(); ++i)
    text += textOf(keyOf(descs[i])) + hexOf(algorithms[i]);
  return checksumText(checksumOf(text));
}

//===----------------------------------------------------------------------===//
// The file
//===----------------------------------------------------------------------===//

static std::string nameOf(std::string device) {
  for (char &c : device)
    if (!std::isalnum(static_cast<unsigned char>(c)))
      c = '_';
  return "matmuls-" + device + "-" + std::to_string(cublasLtGetVersion()) +
         ".json";
}

MatmulTable::MatmulTable(const std::string &folder, std::string device)
    : file(folder + "/" + nameOf(device)), device(std::move(device)) {}

Error MatmulTable::wrong(const std::string &problem) const {
  return Error(file + ": " + problem +
               "; remove it, and matmuls are timed again");
}

std::optional<nlohmann::json> MatmulTable::parse() {
  std::string text = readWholeFile(file, "the choice of matmul algorithms");
  nlohmann::json table;
  try {
    table = parseJson(text, "");
  } catch (const Error &error) {
    throw wrong(error.what());
  }
  if (!table.is_object() || !table.contains("matmuls") ||
      !table["matmuls"].is_array())
    throw wrong("it has no list 'matmuls'");
  if (!table.contains("gpu") || !table["gpu"].is_string() ||
      !table.contains("cublaslt") || !table["cublaslt"].is_number_unsigned())
    throw wrong("it does not say of which 'gpu' and 'cublaslt' it is");
  if (table["gpu"] != device || table["cublaslt"] != cublasLtGetVersion()) {
    auto gpu = table["gpu"].get<std::string>();
    whose = (isPlainLine(gpu) ? "the GPU '" + gpu + "'" : "another GPU") +
            " and cuBLASLt " + table["cublaslt"].dump();
    return std::nullopt;
  }
  if (!table.contains("demands") || table["demands"] != GemmPlan::demands())
    return std::nullopt;
  return table;
}

void MatmulTable::addRow(const nlohmann::json &row, size_t number) {
  auto has = [&](const char *key) {
    return row.is_object() && row.contains(key);
  };
  bool isRow = has("matmul") && row["matmul"].is_object() && has("algorithm") &&
               row["algorithm"].is_string() &&
               algorithmOf(row["algorithm"].get<std::string>());
  if (!isRow)
    throw wrong("entry " + std::to_string(number) +
                " of 'matmuls' is no matmul with its algorithm");
  if (!rows.emplace(textOf(row["matmul"]), Json(row)).second)
    throw wrong("entry " + std::to_string(number) +
                " of 'matmuls' is of a matmul that was there before");
}

void MatmulTable::read() {
  rows.clear();
  whose.clear();
  std::error_code error;
  auto status = std::filesystem::status(file, error);
  if (status.type() == std::filesystem::file_type::not_found)
    return;
  // A pipe would be waited for.
  if (!std::filesystem::is_regular_file(status))
    throw Error("'" + file +
                "' is no regular file, which keeps the choice of matmul "
                "algorithms; remove it, and matmuls are timed again");
  std::optional<nlohmann::json> table = parse();
  if (!table)
    return;
  size_t number = 0;
  for (const nlohmann::json &row : (*table)["matmuls"])
    addRow(row, number++);
}

std::optional<MatmulTable::Algorithm>
MatmulTable::find(const GemmDesc &desc) const {
  auto found = rows.find(textOf(keyOf(desc)));
  if (found == rows.end())
    return std::nullopt;
  return algorithmOf(found->second["algorithm"].get<std::string>());
}

void MatmulTable::add(const GemmDesc &desc, const Algorithm &algorithm,
                      const Timing &timing) {
  Json key = keyOf(desc);
  Json row = {{"matmul", key}, {"algorithm", hexOf(algorithm)}};
  if (std::isfinite(timing.seconds))
    row["microseconds"] = timing.seconds * 1e6;
  if (std::isfinite(timing.secondsOfFirst))
    row["microseconds of the first"] = timing.secondsOfFirst * 1e6;
  row["candidates"] = timing.candidates;
  rows.emplace(textOf(key), std::move(row));
}

void MatmulTable::write(AtomicFile &to) const {
  Json table = {{"gpu", device},
                {"cublaslt", cublasLtGetVersion()},
                {"demands", GemmPlan::demands()},
                {"matmuls", Json::array()}};
  for (const auto &[key, row] : rows)
    table["matmuls"].push_back(row);
  to.write(table.dump(1) + "\n");
}
