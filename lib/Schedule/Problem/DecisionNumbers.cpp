//===- DecisionNumbers.cpp - Decisions without texts ----------------------===//
#include "DecisionNumbers.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

Address fsdp::problem::addressPartsOf(const Op &op, bool again) {
  if (!op.is(kAddressed))
    return {std::nullopt, kNone, op.name, 1};
  return {again ? Phase::Again : op.phase, op.path, op.name, op.index};
}

/// The number after '#', which stands only where it is not 1; 1 if there is
/// none, and what is before.
static std::pair<std::string, uint32_t> withoutIndex(const std::string &name) {
  size_t at = name.rfind('#');
  if (at == std::string::npos || at + 1 == name.size() ||
      name.size() - at > 10 || name[at + 1] == '0' ||
      name.find_first_not_of("0123456789", at + 1) != std::string::npos)
    return {name, 1};
  auto index = static_cast<uint32_t>(std::stoul(name.substr(at + 1)));
  return index > 1 ? std::pair(name.substr(0, at), index)
                   : std::pair(name, uint32_t(1));
}

void DecisionNumbers::set(const Candidate &candidate) {
  const std::vector<Decision> &wanted = candidate.decisions;
  known.resize(wanted.size());
  numbers.resize(wanted.size());
  countAddresses = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!(known[i] == wanted[i])) {
      known[i] = wanted[i];
      numbers[i] = numberOf(wanted[i]);
    }
    countAddresses +=
        numbers[i].startAfter != kNone || numbers[i].awaitBefore != kNone;
  }
}

Id DecisionNumbers::find(const Address &address) const {
  auto at = addressNumbers.find(address);
  return at == addressNumbers.end() ? kNone : at->second;
}

DecisionNumber DecisionNumbers::numberOf(const Decision &decision) {
  DecisionNumber number;
  number.bucket = decision.bucket.empty() ? kNone : textNumber(decision.bucket);
  number.startAfter = addressNumber(decision.startAfter);
  number.awaitBefore = addressNumber(decision.awaitBefore);
  number.prefetch = decision.prefetch;
  number.defer = decision.defer;
  number.merge = decision.merge;
  number.overlap = decision.overlap;
  number.recompute = decision.recompute;
  return number;
}

Id DecisionNumbers::textNumber(const std::string &text) {
  if (Id name = problem.find(text); name != kNone)
    return name;
  return texts.try_emplace(text, problem.numNames() + texts.size())
      .first->second;
}

Id DecisionNumbers::addressNumber(const std::string &text) {
  if (text.empty())
    return kNone;
  Address address;
  size_t first = text.find(' '), last = text.rfind(' ');
  if (first == std::string::npos) {
    address.name = textNumber(text);
  } else {
    for (Phase phase :
         {Phase::Forward, Phase::Again, Phase::Backward, Phase::Update})
      if (phaseName(phase) == std::string_view(text).substr(0, first))
        address.phase = phase;
    if (last == first + 1) // no path stands between
      address.phase.reset();
    auto [name, index] = withoutIndex(text.substr(last + 1));
    // A text that begins with no phase is no address of this problem.
    address.path =
        textNumber(!address.phase  ? text
                   : first == last ? ""
                                   : text.substr(first + 1, last - first - 1));
    address.name = textNumber(name);
    address.index = index;
  }
  auto [at, isNew] = addressNumbers.try_emplace(address, addresses.size());
  if (isNew)
    addresses.push_back(address);
  return at->second;
}
