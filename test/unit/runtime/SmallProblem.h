//===- SmallProblem.h - Problems of a few parameters ------------*- C++ -*-===//
//
// A chain of blocks, each of some ops with a parameter of its own: a gather and
// an op in the forward pass; two ops and a reduction in the backward pass.
// Sizes are chosen so that times are whole microseconds: an op with so many
// bytes takes a microsecond for each thousand.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_SMALLPROBLEM_H
#define FSDP_TEST_UNIT_RUNTIME_SMALLPROBLEM_H

#include "fsdp/Machine/CostModel.h"
#include "fsdp/Schedule/ProblemOrder.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Support/Text.h"
#include <string>
#include <vector>

namespace fsdp::test {

struct SmallParameter {
  int64_t bytes = 0;                ///< Gathered.
  double forward = 0, backward = 0; ///< Microseconds of its ops.
};

struct SmallModel {
  std::vector<std::vector<SmallParameter>> blocks;
  int64_t activation = 1000; ///< Bytes between two ops.
  double loss = 1, update = 1;
  int64_t ranks = 4;
};

/// Collectives take `latency` microseconds and a microsecond for each
/// `bytes` bytes; compute takes 1 + `slowdown` as long beside them.
struct SmallMachine {
  double latency = 1;
  double gatherBytes = 1000, reduceBytes = 1000;
  double slowdown = 0;
};

inline CostModel costsOf(const SmallMachine &machine, int64_t ranks = 4) {
  auto curve = [&](const char *kind, double bytes) {
    return format("[[curve]]\ncollective = \"%s\"\nranks_per_node = %lld\n"
                  "protocols = [{ name = \"line\", latency_seconds = %.9e, "
                  "bytes_per_second = %.9e }]\n",
                  kind, static_cast<long long>(ranks), machine.latency * 1e-6,
                  bytes * 1e6);
  };
  std::string text =
      "name = \"small\"\n[device]\nmemory_bytes = 1e9\n"
      "ranks_per_node = 8\n[compute]\nf32 = 1e12\nbf16 = 1e12\n"
      "[matmul]\nshare = 1\n[attention]\nforward = 1\nbackward = 1\n"
      "[memory]\nbytes_per_second = 1e9\nshare = 1\n" +
      format("[slowdown]\ngather = %.3f\nreduce = %.3f\n", machine.slowdown,
             machine.slowdown) +
      curve("all_gather", machine.gatherBytes) +
      curve("reduce_scatter\"\nsums = \"exact", machine.reduceBytes);
  return CostModel(readMachine(text, "small.toml"));
}

class SmallProblemWriter {
public:
  explicit SmallProblemWriter(const SmallModel &model) : model(model) {}

  problem::Problem run() {
    appendFormat(text,
                 "fsdp.problem 1\ntarget \"cuda\"\npersistent 0\nranks %lld\n"
                 "tokens 1\nruns \"train\" \"train\" 1\n"
                 "kernel 0 0 results element\n"
                 "group %lld 1\nprogram \"train\"\nargument \"x\" %lld\n"
                 "result \"loss\"\nresult \"norm\"\n",
                 static_cast<long long>(model.ranks),
                 static_cast<long long>(model.ranks),
                 static_cast<long long>(model.activation));
    int stream = 0; // the value that the next op takes
    next = 1;
    Id number = 0;
    for (size_t block = 0; block < model.blocks.size(); ++block)
      for (const SmallParameter &parameter : model.blocks[block])
        stream = forward(block, number++, parameter, stream);
    int loss = op("work fwd path \"loss\" name \"mean\"", {stream}, 4,
                  "addressed pure", model.loss);
    int seed = op("seed fwd name \"seed\"", {loss}, 4, "pure", 0);
    int gradient = op("work bwd path \"loss\" name \"mean_grad\"", {seed},
                      model.activation, "addressed pure", model.loss);
    for (size_t block = model.blocks.size(); block-- > 0;)
      for (size_t i = model.blocks[block].size(); i-- > 0;)
        gradient = backward(block, --number, model.blocks[block][i], gradient);
    std::vector<int> all(gradients.rbegin(), gradients.rend());
    int update = op("work update path \"optimizer\" name \"sum_squares\"", all,
                    64, "addressed pure", model.update);
    appendFormat(text, "op return fwd name \"return\" takes %d %d\n", loss,
                 update);
    return problem::parse(text, "small");
  }

private:
  using Id = problem::Id;

  /// Gives the number of its result.
  int op(const std::string &head, const std::vector<int> &takes, int64_t gives,
         const std::string &tail, double microseconds) {
    text += "op " + head;
    if (!takes.empty())
      text += " takes";
    for (int value : takes)
      text += " " + std::to_string(value);
    text += " gives " + std::to_string(gives) + " " + tail;
    if (auto bytes = static_cast<int64_t>(microseconds * 1000); bytes != 0)
      text += " bytes " + std::to_string(bytes);
    text += "\n";
    return next++;
  }

  static std::string blockOf(size_t block) {
    return "\"layers." + std::to_string(block) + "\"";
  }
  static std::string pathOf(size_t block, Id number) {
    return " path \"layers." + std::to_string(block) + ".w" +
           std::to_string(number) + "\"";
  }
  std::string moves(const char *kind, Id number, int64_t bytes, int key) const {
    return format("%s ranks %lld group 0 parameter \"w%u\" order %u key %d "
                  "items %lld %lld",
                  kind, static_cast<long long>(model.ranks), number, number,
                  key, static_cast<long long>(bytes / 2 / model.ranks),
                  static_cast<long long>(bytes / 2));
  }

  int forward(size_t block, Id number, const SmallParameter &parameter,
              int stream) {
    std::string of = "block " + blockOf(block) + " addressed ";
    int shard = op("read fwd name \"read\"", {}, parameter.bytes / model.ranks,
                   "states \"w" + std::to_string(number) + "\"", 0);
    int full =
        op("collective fwd" + pathOf(block, number) + " name \"all_gather\"",
           {shard}, parameter.bytes,
           of + "recomputable " +
               moves("all_gather sum bf16 bf16", number, parameter.bytes, 0),
           0);
    inputs.push_back(stream);
    weights.push_back(full);
    return op("work fwd" + pathOf(block, number) + " name \"linear\"",
              {stream, full}, model.activation, of + "pure recomputable",
              parameter.forward);
  }

  int backward(size_t block, Id number, const SmallParameter &parameter,
               int gradient) {
    std::string of = "block " + blockOf(block) + " addressed ";
    int dw = op("work bwd" + pathOf(block, number) + " name \"dw\"",
                {gradient, inputs[number]}, parameter.bytes, of + "pure",
                parameter.backward / 2);
    gradients.push_back(op(
        "collective bwd" + pathOf(block, number) + " name \"reduce_scatter\"",
        {dw}, 2 * parameter.bytes / model.ranks,
        of + moves("reduce_scatter sum bf16 f32", number, parameter.bytes, 1),
        0));
    return op("work bwd" + pathOf(block, number) + " name \"dx\"",
              {gradient, weights[number]}, model.activation, of + "pure",
              parameter.backward / 2);
  }

  const SmallModel &model;
  std::string text;
  int next = 0; // the number of the next value
  std::vector<int> inputs, weights, gradients;
};

inline problem::Problem problemOf(const SmallModel &model) {
  return SmallProblemWriter(model).run();
}

/// What the rule decides: a bucket for each block, gathered again for the
/// backward pass, one ahead.
inline problem::Candidate ruleOf(const problem::Problem &problem) {
  problem::Candidate candidate(problem);
  const problem::Program &program = problem.programs[0];
  for (problem::Id i = 0; i < program.ops.size(); ++i) {
    const problem::Op &op = program.ops[i];
    if (op.kind != problem::OpKind::Collective)
      continue;
    problem::Decision decision;
    decision.bucket = std::string(problem.text(op.block));
    decision.overlap = true;
    bool isGather = program.collective(op).isGather();
    (isGather ? decision.prefetch : decision.defer) = 1;
    candidate.programs[0].again[i] = candidate.add(decision);
    decision.recompute = isGather;
    candidate.programs[0].of[i] = candidate.add(decision);
  }
  return candidate;
}

} // namespace fsdp::test

#endif // FSDP_TEST_UNIT_RUNTIME_SMALLPROBLEM_H
