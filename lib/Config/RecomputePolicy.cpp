//===- RecomputePolicy.cpp - Which values are computed again --------------===//
#include "fsdp/Config/RecomputePolicy.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <charconv>
#include <string_view>

using namespace fsdp;

using Kind = RecomputePolicy::Kind;

namespace {

struct NamedPolicy {
  std::string_view name;
  Kind kind;
};

} // namespace

static constexpr NamedPolicy kNamed[] = {
    {"none", Kind::None},         {"free", Kind::Free},
    {"full", Kind::Full},         {"selective", Kind::Alternating},
    {"eager", Kind::Alternating}, {"sac", Kind::Expensive}};

const std::vector<std::string> &fsdp::knownRecomputePolicies() {
  static const std::vector<std::string> known = {
      "none", "free", "sac", "selective", "every-2", "full"};
  return known;
}

static bool takePrefix(std::string_view &text, std::string_view prefix) {
  if (text.substr(0, prefix.size()) != prefix)
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

static bool dropSuffix(std::string_view &text, std::string_view suffix) {
  if (text.size() < suffix.size() ||
      text.substr(text.size() - suffix.size()) != suffix)
    return false;
  text.remove_suffix(suffix.size());
  return true;
}

[[noreturn]] static void failPolicy(const std::string &text,
                                    const std::string &why) {
  throw Error("compile.recompute: '" + text + "' " + why +
              "; say auto, none, free, full, every-N, selective, eager, sac, "
              "save:OPS or recompute:OPS, with ops separated by |");
}

static int64_t parseEvery(const std::string &text, std::string_view number) {
  int64_t every = 0;
  const char *end = number.data() + number.size();
  auto [at, error] = std::from_chars(number.data(), end, every);
  if (error != std::errc() || at != end || every < 1)
    failPolicy(text, "counts blocks by no whole number from 1 on");
  return every;
}

static std::vector<std::string> parseOps(const std::string &text,
                                         std::string_view list) {
  std::vector<std::string> ops;
  while (true) {
    size_t end = std::min(list.find('|'), list.size());
    ops.emplace_back(list.substr(0, end));
    std::string_view op = ops.back();
    if (op.empty() || op.substr(0, 2) == "::" ||
        (op.size() > 1 && op.substr(op.size() - 2) == "::"))
      failPolicy(text, "has an op without a name");
    if (end == list.size())
      return ops;
    list.remove_prefix(end + 1);
  }
}

std::string fsdp::recomputePolicyFor(const std::string &text,
                                     bool saysOfValues) {
  if (text != "auto")
    return text;
  return saysOfValues ? "none" : "free";
}

RecomputePolicy fsdp::parseRecomputePolicy(const std::string &text) {
  for (const NamedPolicy &named : kNamed)
    if (text == named.name)
      return {named.kind, 1, {}};
  std::string_view rest = text;
  if (takePrefix(rest, "every-"))
    return {Kind::Every, parseEvery(text, rest), {}};
  if (takePrefix(rest, "save:"))
    return {Kind::Save, 1, parseOps(text, rest)};
  if (takePrefix(rest, "recompute:"))
    return {Kind::Again, 1, parseOps(text, rest)};
  failPolicy(text, "is no policy");
}

std::string fsdp::opOfTorchName(const std::string &name) {
  std::string_view op = name;
  takePrefix(op, "torch.ops.");
  takePrefix(op, "aten.");
  takePrefix(op, "_c10d_functional.");
  dropSuffix(op, ".default");
  if (op.find("scaled_dot_product") != std::string_view::npos ||
      op == "flex_attention")
    return "attention";
  if (op == "mm" || op == "addmm" || op == "matmul")
    return "linear";
  if (op == "_fused_rms_norm")
    return "rms_norm";
  if (op == "all_gather_into_tensor")
    return "all_gather";
  if (op == "reduce_scatter_tensor")
    return "reduce_scatter";
  return std::string(op);
}
