//===- RepeatSections.cpp - Where a repeated block is split ---------------===//
#include "passes/Exec/RepeatSections.h"
#include "dialects/Exec/Exec.h"
#include <map>

using namespace mlir;
using namespace fsdp;

RepeatSections::Gap RepeatSections::gap(size_t index, size_t copy) const {
  Gap result;
  if (index > 0)
    result.first = item(index - 1, copy).after;
  if (index < repeat.period)
    result.second = item(index, copy).before;
  return result;
}

RepeatSections::RepeatSections(const std::vector<RepeatedWork> &items,
                               const Repeat &repeat, int64_t minSaved)
    : items(items), repeat(repeat), minSaved(minSaved) {
  std::map<std::vector<int>, uint32_t> numbers;
  events.resize(repeat.period + 1);
  for (size_t index = 0; index <= repeat.period; ++index)
    for (size_t copy = 0; copy < repeat.count; ++copy) {
      std::vector<int> kinds;
      Gap ops = gap(index, copy);
      for (ArrayRef<Operation *> list : {ops.first, ops.second})
        for (Operation *op : list) {
          auto wait = dyn_cast<exec::WaitOp>(op);
          exec::Stream stream =
              wait ? wait.getStream() : cast<exec::RecordOp>(op).getStream();
          kinds.push_back(2 * int(stream) + (wait ? 1 : 0));
        }
      events[index].push_back(
          numbers.insert({std::move(kinds), numbers.size()}).first->second);
    }
  size_t cheapest = SIZE_MAX;
  for (double agreement : {0.0, 0.5, 0.75, 0.9, 1.0}) {
    std::vector<bool> candidate = cutsBelow(agreement);
    size_t statements = sectionsOf(candidate).second;
    if (statements < cheapest) {
      cheapest = statements;
      cuts = std::move(candidate);
    }
  }
}

std::vector<bool> RepeatSections::cutsBelow(double agreement) const {
  std::vector<bool> result;
  for (const std::vector<uint32_t> &numbers : events) {
    std::map<uint32_t, size_t> copies;
    size_t most = 0;
    for (uint32_t number : numbers)
      most = std::max(most, ++copies[number]);
    result.push_back(double(most) < agreement * double(repeat.count));
  }
  return result;
}

std::pair<std::vector<RepeatSection>, size_t>
RepeatSections::sectionsOf(const std::vector<bool> &cuts) const {
  std::vector<RepeatSection> sections;
  size_t statements = 0;
  for (size_t begin = 0, end; begin < repeat.period; begin = end) {
    end = begin + 1;
    while (end < repeat.period && !cuts[end])
      ++end;
    std::map<std::vector<uint32_t>, RepeatSection> groups;
    for (size_t copy = 0; copy < repeat.count; ++copy) {
      std::vector<uint32_t> key;
      for (size_t index = begin; index <= end; ++index)
        key.push_back(cuts[index] ? 0 : events[index][copy]);
      RepeatSection &section = groups[key];
      section.begin = begin;
      section.end = end;
      section.copies.push_back(copy);
    }
    for (auto &[key, section] : groups) {
      size_t count = section.copies.size();
      bool pays = count > 1 && savedBy(end - begin, count) >= minSaved;
      statements += pays ? end - begin + count : count * (end - begin);
      if (pays)
        sections.push_back(std::move(section));
    }
  }
  return {std::move(sections), statements};
}

SmallVector<Operation *>
RepeatSections::operations(const RepeatSection &section, size_t copy) const {
  SmallVector<Operation *> ops;
  for (size_t index = section.begin; index <= section.end; ++index) {
    // Events at a split stay in the program; both ends of a section inside the
    // block are splits.
    if (!cuts[index]) {
      Gap events = gap(index, copy);
      llvm::append_range(ops, events.first);
      llvm::append_range(ops, events.second);
    }
    if (index < section.end)
      ops.push_back(item(index, copy).op);
  }
  return ops;
}
