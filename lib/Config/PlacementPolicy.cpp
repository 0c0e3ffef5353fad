//===- PlacementPolicy.cpp - Placement policies, built in and from TOML ---===//
#include "fsdp/Config/PlacementPolicy.h"
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include <algorithm>
#include <filesystem>

using namespace fsdp;

PlacementPolicy fsdp::tensorParallelLlama(const std::string &axis,
                                          bool sequence, bool loss) {
  PlacementPolicy policy;
  auto cut = [&](const char *match, int64_t dim, bool keyHeads = false) {
    PlacementPolicy::Parameters rule;
    rule.match = match;
    rule.shard.emplace().emplace_back(axis, dim);
    rule.keyHeads = keyHeads;
    rule.origin = "the tensor-parallel plan of Llama";
    policy.parameters.push_back(rule);
  };
  cut("layers.*.attention.wq.weight", 0);
  cut("layers.*.attention.w[kv].weight", 0, /*keyHeads=*/true);
  cut("layers.*.attention.wo.weight", 1);
  cut("layers.*.feed_forward.w[13].weight", 0);
  cut("layers.*.feed_forward.w2.weight", 1);
  policy.stream = {sequence ? axis : "", loss ? axis : "",
                   "the tensor-parallel plan of Llama"};
  return policy;
}

//===----------------------------------------------------------------------===//
// TOML
//===----------------------------------------------------------------------===//

namespace {

/// One table of a policy, read key by key.
class Reader {
public:
  Reader(const toml::node &node, std::string path, std::string what)
      : path(std::move(path)), what(std::move(what)), node(node) {
    if (!node.is_table())
      fail(node, "expected a table");
  }

  std::string origin() const { return originOf(node, path); }

  [[noreturn]] void fail(const toml::node &at, const std::string &why) const {
    throw Error(originOf(at, path) + ": " + what + ": " + why);
  }

  void string(const char *key, std::string &value) {
    if (const toml::node *found = find(key)) {
      if (!found->is_string())
        fail(*found, std::string(key) + ": expected a string");
      value = found->as_string()->get();
    }
  }

  void boolean(const char *key, std::optional<bool> &value) {
    if (const toml::node *found = find(key)) {
      if (!found->is_boolean())
        fail(*found, std::string(key) + ": expected true or false");
      value = found->as_boolean()->get();
    }
  }

  void
  axes(const char *key,
       std::optional<std::vector<std::pair<std::string, int64_t>>> &value) {
    const toml::node *found = find(key);
    if (!found)
      return;
    if (!found->is_table())
      fail(*found, std::string(key) + ": expected { AXIS = DIMENSION, … }");
    value.emplace();
    for (const auto &[axis, dim] : inOrder(*found->as_table())) {
      if (!dim->is_integer() || dim->as_integer()->get() < 0)
        fail(*dim, std::string(key) + "." + axis +
                       ": expected a dimension, 0 or above");
      value->emplace_back(axis, dim->as_integer()->get());
    }
  }

  /// Refuses keys that nobody asked for.
  void finish() {
    for (const auto &[key, value] : inOrder(*node.as_table()))
      if (std::find(known.begin(), known.end(), key) == known.end())
        fail(*value, "unknown key '" + key + "'" + didYouMean(key, known));
  }

private:
  const toml::node *find(const char *key) {
    known.emplace_back(key);
    return node.as_table()->get(key);
  }

  std::string path, what;
  const toml::node &node;
  std::vector<std::string> known;
};

} // namespace

static PlacementPolicy::Stream readStream(const toml::node &node,
                                          const std::string &path) {
  Reader reader(node, path, "[stream]");
  PlacementPolicy::Stream stream;
  stream.origin = reader.origin();
  reader.string("sequence", stream.sequence);
  stream.loss = stream.sequence;
  reader.string("loss", stream.loss);
  reader.finish();
  return stream;
}

static PlacementPolicy::Parameters readRule(const toml::node &node,
                                            const std::string &path) {
  Reader reader(node, path, "[[parameters]]");
  PlacementPolicy::Parameters rule;
  rule.origin = reader.origin();
  reader.string("match", rule.match);
  reader.axes("shard", rule.shard);
  reader.boolean("key_heads", rule.keyHeads);
  reader.boolean("frozen", rule.frozen);
  reader.boolean("replicate", rule.replicate);
  reader.finish();
  if (rule.match.empty())
    reader.fail(node, "match: expected a pattern of parameter names");
  return rule;
}

/// A device or a pipe may never end, and no policy is that large. A file that
/// is not there is for the reader to report.
static void requireSmallFile(const std::string &path) {
  constexpr uintmax_t limit = 1 << 20;
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return;
  if (!std::filesystem::is_regular_file(status))
    throw Error("the placement policy '" + path +
                "' is not a regular file; copy it into one");
  uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > limit)
    throw Error("the placement policy '" + path + "' has " +
                std::to_string(size) + " bytes, more than 1 MiB");
}

PlacementPolicy fsdp::loadPolicy(const std::string &path) {
  requireSmallFile(path);
  PlacementPolicy policy;
  toml::table table = parseToml(path, "the placement policy");
  for (const auto &[key, node] : inOrder(table)) {
    if (key == "stream") {
      policy.stream = readStream(*node, path);
    } else if (key == "parameters" && node->is_array()) {
      for (const toml::node &rule : *node->as_array())
        policy.parameters.push_back(readRule(rule, path));
    } else {
      throw Error(originOf(*node, path) +
                  ": a policy has [stream] and "
                  "[[parameters]], not '" +
                  key + "'");
    }
  }
  return policy;
}

//===----------------------------------------------------------------------===//
// What a policy says
//===----------------------------------------------------------------------===//

static std::string quoted(const std::string &text) { return '"' + text + '"'; }

static std::string textOf(const PlacementPolicy::Parameters &rule) {
  std::string text = "{ match = " + quoted(rule.match);
  auto flag = [&](const char *key, const std::optional<bool> &value) {
    if (value)
      text += std::string(", ") + key + (*value ? " = true" : " = false");
  };
  if (rule.shard) {
    // Axes cut a dimension in the order of the mesh, not in that of the file.
    auto axes = *rule.shard;
    std::sort(axes.begin(), axes.end());
    text += ", shard = {";
    for (const auto &[axis, dim] : axes)
      text += (text.back() == '{' ? " " : ", ") + axis + " = " +
              std::to_string(dim);
    text += " }";
  }
  flag("key_heads", rule.keyHeads);
  flag("frozen", rule.frozen);
  flag("replicate", rule.replicate);
  return text + " }";
}

std::map<std::string, std::string>
fsdp::policyRules(const PlacementPolicy &policy) {
  std::map<std::string, std::string> rules;
  if (const auto &stream = policy.stream)
    rules["[stream]"] = "{ sequence = " + quoted(stream->sequence) +
                        ", loss = " + quoted(stream->loss) + " }";
  for (size_t i = 0; i < policy.parameters.size(); ++i)
    rules["[[parameters]] " + std::to_string(i + 1)] =
        textOf(policy.parameters[i]);
  return rules;
}
