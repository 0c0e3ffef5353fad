//===- History.cpp - What a run that goes on has done before --------------===//
#include "History.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unistd.h>

using namespace fsdp;
using nlohmann::json;

/// A number that was written exactly, "0x1.8p+1".
static std::optional<double> exactOf(const json &line, const char *name) {
  auto found = line.find(std::string(name) + "_hex");
  if (found == line.end() || !found->is_string())
    return std::nullopt;
  return std::strtod(found->get_ref<const std::string &>().c_str(), nullptr);
}

static double numberOf(const json &line, const char *name) {
  auto found = line.find(name);
  return found != line.end() && found->is_number() ? found->get<double>() : 0;
}

/// The step that a line is of; unset: it is of none, or damaged.
static std::optional<int64_t> stepOf(const json &line) {
  const json *object = &line;
  if (auto found = line.find("validation"); found != line.end())
    object = &*found;
  if (!object->is_object())
    return std::nullopt;
  auto found = object->find("step");
  if (found == object->end() || !found->is_number_integer())
    return std::nullopt;
  return found->get<int64_t>();
}

static StepRecord recordOf(const json &line) {
  StepRecord record{};
  record.step = line["step"].get<int64_t>();
  record.loss = exactOf(line, "loss").value_or(numberOf(line, "loss"));
  record.gradNorm = exactOf(line, "grad_norm");
  if (line.contains("lr"))
    record.lr = numberOf(line, "lr");
  record.seconds = numberOf(line, "seconds");
  return record;
}

namespace {

/// Reads a file of metrics line by line.
class Reader {
public:
  explicit Reader(int64_t last) : last(last) {}

  /// `end`: where the next line begins.
  void take(const std::string &text, std::streamoff end) {
    json line = parseJsonOrNull(text);
    if (!line.is_object())
      return keep(end);
    if (auto run = line.find("run"); run != line.end())
      return begin(*run, end);
    std::optional<int64_t> step = stepOf(line);
    if (isPast || (step && *step > last)) {
      isPast = true;
      ++history.linesCut;
      return;
    }
    keep(end);
    if (step && line.contains("validation"))
      history.validations.push_back(
          {*step, exactOf(line["validation"], "loss").value_or(NAN)});
    else if (step)
      history.steps.push_back(recordOf(line));
  }

  History history;
  std::streamoff kept = 0; // what stays

private:
  void keep(std::streamoff end) {
    if (!isPast)
      kept = end;
  }

  /// A run that goes on from another has that one's steps, as far as they are
  /// its own.
  void begin(const json &run, std::streamoff end) {
    if (run.is_object() && run.contains("resumed_from"))
      return keep(end);
    history = {};
    isPast = false;
    kept = end;
  }

  int64_t last;
  bool isPast = false; // the last step that counts
};

} // namespace

History fsdp::rewindMetrics(const std::string &path, int64_t last) {
  std::ifstream file(path, std::ios::binary);
  if (!file && errno == ENOENT)
    return {};
  if (!file)
    throw Error("cannot read '" + path + "': " + std::strerror(errno));
  Reader reader(last);
  std::streamoff end = 0;
  for (std::string line; std::getline(file, line);) {
    end += static_cast<std::streamoff>(line.size()) + (file.eof() ? 0 : 1);
    reader.take(line, end);
  }
  file.close();
  if (reader.history.linesCut > 0 && truncate(path.c_str(), reader.kept) != 0)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
  return std::move(reader.history);
}
