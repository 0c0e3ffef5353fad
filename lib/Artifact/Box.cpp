//===- Box.cpp - Parts of tensors -----------------------------------------===//
#include "fsdp/Artifact/Box.h"
#include "fsdp/Support/CheckedSize.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

int64_t rt::elementCount(const std::vector<int64_t> &shape) {
  return productOf(shape).saturated();
}

std::string rt::indexText(int64_t element, const std::vector<int64_t> &shape) {
  std::string text;
  for (size_t d = shape.size(); d-- > 0; element /= shape[d])
    text =
        std::to_string(element % shape[d]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

Box rt::wholeBox(const std::vector<int64_t> &shape) {
  return {std::vector<int64_t>(shape.size(), 0), shape};
}

bool rt::isInside(const Box &box, const std::vector<int64_t> &shape) {
  if (box.offsets.size() != shape.size() || box.sizes.size() != shape.size())
    return false;
  for (size_t d = 0; d < shape.size(); ++d)
    if (box.offsets[d] > shape[d] || box.sizes[d] > shape[d] - box.offsets[d])
      return false;
  return true;
}

bool rt::overlap(const Box &a, const Box &b) {
  for (size_t d = 0; d < a.offsets.size(); ++d)
    if (std::max(a.offsets[d], b.offsets[d]) >= std::min(a.end(d), b.end(d)))
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {

/// The runs of a box. Dimensions from `cut` on are whole, so that a run goes
/// through all of them and through what the box has of the one before.
class Runs {
public:
  Runs(const ShardView &view, const std::vector<int64_t> &full)
      : view(view), full(full), cut(full.size()) {
    auto isWhole = [&](size_t d) {
      return view.offsets[d] == 0 && view.sizes[d] == full[d] &&
             view.stored[d] == full[d];
    };
    for (; cut > 0 && isWhole(cut - 1); --cut)
      inner *= full[cut - 1];
  }

  /// `stored` and `whole` count what lies before along the dimensions so far.
  void visit(const TakeRun &run, size_t d = 0, int64_t stored = 0,
             int64_t whole = 0) const {
    if (cut == 0)
      return run(0, 0, inner);
    stored *= view.stored[d];
    whole = whole * full[d] + view.offsets[d];
    int64_t count = view.sizes[d];
    if (d + 1 == cut) {
      if (count > 0)
        run(stored * inner, whole * inner, count * inner);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      visit(run, d + 1, stored + i, whole + i);
  }

  int64_t count() const {
    CheckedSize runs = 1;
    for (size_t d = 0; d + 1 < cut; ++d)
      runs *= view.sizes[d];
    return runs.saturated();
  }

private:
  const ShardView &view;
  const std::vector<int64_t> &full;
  size_t cut;
  int64_t inner = 1;
};

} // namespace

void rt::forEachRun(const ShardView &view, const std::vector<int64_t> &full,
                    const TakeRun &run) {
  Runs(view, full).visit(run);
}

void rt::forEachRunWithin(int64_t first, int64_t count, const ShardView &view,
                          const std::vector<int64_t> &full,
                          const TakeRun &run) {
  forEachRun(view, full, [&](int64_t stored, int64_t whole, int64_t length) {
    int64_t begin = std::max(stored, first);
    int64_t end = std::min(stored + length, first + count);
    if (begin < end)
      run(begin, whole + begin - stored, end - begin);
  });
}

int64_t rt::countRuns(const ShardView &view, const std::vector<int64_t> &full) {
  return Runs(view, full).count();
}
