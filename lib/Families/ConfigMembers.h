//===- ConfigMembers.h - Reading config.json --------------------*- C++ -*-===//
#ifndef FSDP_FAMILIES_CONFIGMEMBERS_H
#define FSDP_FAMILIES_CONFIGMEMBERS_H

#include "fsdp/Families/Families.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/Json.h"

namespace fsdp::checkpoint {

/// The members of an object in config.json; messages end with the place. All
/// throw fsdp::Error.
class Members {
public:
  Members(const nlohmann::json &object, std::string place);

  bool isThere(const char *key) const { return object.contains(key); }
  /// Null if it is not there or null.
  const nlohmann::json *find(const char *key) const;
  const nlohmann::json &at(const char *key) const;
  /// From 1 to `max`.
  int64_t integer(const char *key, int64_t max) const;
  double number(const char *key) const;
  double positive(const char *key) const;
  double notNegative(const char *key) const;
  /// `count` positive numbers.
  std::vector<double> positives(const char *key, size_t count) const;
  bool boolean(const char *key) const;
  std::string string(const char *key) const;
  std::string path(const std::string &key) const { return place + "." + key; }

  /// Refuses what the model cannot express. Unknown keys are only warned about:
  /// files carry notes of the tools that wrote them.
  void check(const std::vector<ConfigKey> &keys,
             std::vector<std::string> &warnings) const;

private:
  double positiveOf(const nlohmann::json &value, const std::string &at) const;

  const nlohmann::json &object;
  std::string place;
};

using ModelFields = std::map<std::string, std::string>;

/// As a manifest has it: a number without a fraction is written without one.
std::string numberText(double value);

/// Reads the rotary keys of `document`, whose members are `members`, into the
/// fields of a model whose other fields are read.
void readRope(const Members &members, const nlohmann::json &document,
              const Family &family, ModelConfig &config);
/// The rotary keys with their JSON, as versions 4 and 5 have them.
void writeRope(const DecoderConfig &model, const Family &family,
               std::map<std::string, nlohmann::ordered_json> &config);

/// Reads the keys of windows into the fields of a model whose other fields are
/// read.
void readWindows(const Members &members, const Family &family,
                 ModelFields &fields);
void writeWindows(const DecoderConfig &model, const Family &family,
                  std::map<std::string, nlohmann::ordered_json> &config);

} // namespace fsdp::checkpoint

#endif // FSDP_FAMILIES_CONFIGMEMBERS_H
