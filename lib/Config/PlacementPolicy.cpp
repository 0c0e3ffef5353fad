//===- PlacementPolicy.cpp - Placement policies, built in and from TOML ---===//
#include "fsdp/Config/PlacementPolicy.h"
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;

PlacementPolicy fsdp::tensorParallelPlan(const std::string &axis, bool sequence,
                                         bool loss) {
  PlacementPolicy policy;
  auto shard = [&](const char *match, int64_t dim, bool keyHeads = false) {
    PlacementPolicy::Parameters rule;
    rule.match = match;
    rule.shard.emplace().emplace_back(axis, dim);
    rule.keyHeads = keyHeads;
    rule.origin = "the tensor-parallel plan";
    policy.parameters.push_back(rule);
  };
  shard("layers.*.attention.wq.weight", 0);
  shard("layers.*.attention.w[kv].weight", 0, /*keyHeads=*/true);
  shard("layers.*.attention.wo.weight", 1);
  shard("layers.*.feed_forward.w[13].weight", 0);
  shard("layers.*.feed_forward.w2.weight", 1);
  policy.stream = {sequence ? axis : "", loss ? axis : "",
                   "the tensor-parallel plan"};
  return policy;
}

//===----------------------------------------------------------------------===//
// TOML
//===----------------------------------------------------------------------===//

static void
readAxes(TomlTable &table, const char *key,
         std::optional<std::vector<std::pair<std::string, int64_t>>> &value) {
  const toml::node *found = table.find(key);
  if (!found)
    return;
  if (!found->is_table())
    table.fail(*found, std::string(key) + ": expected { AXIS = DIMENSION, … }");
  value.emplace();
  for (const auto &[axis, dim] : inOrder(*found->as_table())) {
    if (!dim->is_integer() || dim->as_integer()->get() < 0)
      table.fail(*dim, std::string(key) + "." + axis +
                           ": expected a dimension, 0 or above");
    value->emplace_back(axis, dim->as_integer()->get());
  }
}

static PlacementPolicy::Stream readStream(const toml::node &node,
                                          const std::string &path) {
  TomlTable table(node, path, "[stream]");
  PlacementPolicy::Stream stream;
  stream.origin = table.origin();
  table.string("sequence", stream.sequence);
  stream.loss = stream.sequence;
  table.string("loss", stream.loss);
  table.finish();
  return stream;
}

static PlacementPolicy::Parameters readRule(const toml::node &node,
                                            const std::string &path) {
  TomlTable table(node, path, "[[parameters]]");
  PlacementPolicy::Parameters rule;
  rule.origin = table.origin();
  table.string("match", rule.match);
  readAxes(table, "shard", rule.shard);
  table.boolean("key_heads", rule.keyHeads);
  table.boolean("frozen", rule.frozen);
  table.boolean("replicate", rule.replicate);
  table.finish();
  if (rule.match.empty())
    table.fail(node, "match: expected a pattern of parameter names");
  return rule;
}

PlacementPolicy fsdp::loadPolicy(const std::string &path) {
  requireSmallFile(path, "the placement policy");
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
    // Axes shard a dimension in the order of the mesh, not in that of the file.
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
