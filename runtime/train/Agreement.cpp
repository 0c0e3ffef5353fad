//===- Agreement.cpp - What ranks decide together -------------------------===//
#include "Agreement.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Explain.h"
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;

Failures fsdp::countFailures(World world, const std::string &problem) {
  double count = problem.empty() ? 0 : 1;
  allReduceSum(&count, 1);
  if (count == 0)
    return {};
  std::vector<double> failed(static_cast<size_t>(world.size), 0);
  failed[static_cast<size_t>(world.rank)] = problem.empty() ? 0 : 1;
  allReduceSum(failed.data(), world.size);
  Failures failures{static_cast<int>(count), 0};
  while (failed[static_cast<size_t>(failures.first)] == 0)
    ++failures.first;
  return failures;
}

void fsdp::requireSuccess(World world, const std::string &problem) {
  Failures failures = countFailures(world, problem);
  if (failures.count == 0)
    return;
  if (failures.first == world.rank)
    throw Error(problem);
  barrier(); // the rank that throws never comes
}

std::string fsdp::problemOf(const std::function<void()> &act) {
  try {
    act();
  } catch (const std::exception &error) {
    return explain(error);
  }
  return {};
}

std::string fsdp::broadcastText(std::string text, int root) {
  auto size = static_cast<int64_t>(text.size());
  broadcast(&size, sizeof size, root);
  text.resize(static_cast<size_t>(size));
  if (size > 0)
    broadcast(text.data(), size, root);
  return text;
}
