//===- PrintProblem.cpp - A problem becomes text --------------------------===//
#include "ProblemWords.h"
#include "fsdp/Schedule/ProblemText.h"

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Printer {
public:
  explicit Printer(const Problem &problem) : problem(problem) {}

  std::string run() {
    word("fsdp.problem 1\ntarget");
    quoted(problem.target);
    word("\npersistent");
    number(problem.persistentBytes);
    line("ranks", problem.ranks, 1);
    line("tokens", problem.tokens);
    for (const StepRun &run : problem.steps) {
      word("\nruns");
      name(run.step);
      name(run.program);
      number(run.times);
    }
    for (const Kernel &kernel : problem.kernels)
      print(kernel);
    for (const Math &math : problem.maths)
      print(math);
    for (const RankGroup &group : problem.groups) {
      word("\ngroup");
      for (GroupAxis axis : group) {
        number(axis.size);
        number(axis.stride);
      }
    }
    for (const Program &program : problem.programs)
      print(program);
    return text + "\n";
  }

private:
  void word(std::string_view word) {
    if (!text.empty() && text.back() != '\n' && word.front() != '\n')
      text += ' ';
    text += word;
  }
  void number(int64_t value) { word(std::to_string(value)); }
  void name(Id id) { quoted(problem.text(id)); }

  /// Control characters, quotes and backslashes as two hexadecimal digits.
  void quoted(std::string_view value) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string all = "\"";
    for (char c : value) {
      auto byte = static_cast<unsigned char>(c);
      if (byte < 32 || c == '"' || c == '\\') {
        all += '\\';
        all += kDigits[byte >> 4];
        all += kDigits[byte & 15];
      } else {
        all += c;
      }
    }
    word(all + "\"");
  }

  /// A field that is left out where it has its default.
  void field(std::string_view key, int64_t value, int64_t initial = 0) {
    if (value == initial)
      return;
    word(key);
    number(value);
  }
  void number(std::string_view key, Id id) {
    if (id == kNone)
      return;
    word(key);
    number(id);
  }
  void field(std::string_view key, Id id) {
    if (id == kNone)
      return;
    word(key);
    name(id);
  }

  /// A line that is left out where it has its default.
  void line(std::string_view key, int64_t value, int64_t initial = 0) {
    if (value == initial)
      return;
    text += '\n';
    field(key, value, initial);
  }

  void print(const Math &math) {
    word("\nmath");
    word(kMathWords[unsigned(math.kind)]);
    word(kTypeWords[unsigned(math.type)]);
    if (math.kind != MathKind::Product)
      number(math.flops);
    // A problem by hand need not say them of attention.
    if (math.kind != MathKind::Product && math.m == 0)
      return;
    if (math.kind != MathKind::Product)
      word("heads");
    for (int64_t size : {math.batch, math.m, math.n, math.k})
      number(size);
    if (math.transposeLhs)
      word("lhs");
    if (math.transposeRhs)
      word("rhs");
  }

  void print(const Kernel &kernel) {
    word("\nkernel");
    number(kernel.rows);
    number(kernel.columns);
    if (kernel.canFuse)
      word("fuses");
    if (kernel.sumsRows)
      word("sums_rows");
    if (kernel.isExpensive)
      word("expensive");
    word("results");
    for (Form form : kernel.results)
      word(kFormWords[unsigned(form)]);
    for (const KernelRead &read : kernel.reads) {
      word("read");
      number(read.operand);
      word(kAccessWords[unsigned(read.access)]);
      if (read.inReduction)
        word("reducing");
      field("for", int64_t(read.forResults));
    }
  }

  void print(const Program &program) {
    word("\nprogram");
    name(program.name);
    field("own", program.ownOutputBytes);
    for (Id i = 0; i < program.arguments.size(); ++i) {
      word("\nargument");
      name(program.arguments[i]);
      number(program.values[i].bytes);
    }
    for (Id result : program.results) {
      word("\nresult");
      name(result);
    }
    for (const Op &op : program.ops)
      print(program, op);
  }

  void print(const Program &program, const Op &op) {
    word("\nop");
    word(kKindWords[unsigned(op.kind)]);
    word(phaseName(op.phase));
    if (op.path != kNone && !problem.text(op.path).empty())
      field("path", op.path);
    field("name", op.name);
    field("number", int64_t(op.index), 1);
    if (op.operands.count > 0) {
      word("takes");
      for (Id i = 0; i < op.operands.count; ++i)
        number(program.operand(op, i));
    }
    if (op.results.count > 0) {
      word("gives");
      for (Id value = op.results.begin; value < op.results.end(); ++value)
        number(program.values[value].bytes);
    }
    if (op.states.count > 0) {
      word("states");
      for (Id i = op.states.begin; i < op.states.end(); ++i)
        name(program.states[i]);
    }
    field("block", op.block);
    for (int flag = 0; flag < kOpFlags; ++flag)
      if ((op.flags >> flag & 1) != 0)
        word(kFlagWords[flag]);
    if (op.kind == OpKind::Collective || op.is(kRegathered))
      print(program, program.collective(op));
    else
      field("detail", op.detail);
    field("flops", op.flops);
    field("bytes", op.bytes);
    field("workspace", op.workspace);
    number("math", op.math);
  }

  void print(const Program &program, const Collective &collective) {
    word(rt::kCollectiveNames[unsigned(collective.kind)]);
    word(kReduceWords[unsigned(collective.reduce)]);
    word(kTypeWords[unsigned(collective.in)]);
    word(kTypeWords[unsigned(collective.out)]);
    if (collective.isFast)
      word("fast");
    field("ranks", collective.ranks, 1);
    field("node", collective.nodeRanks);
    number("group", collective.group);
    field("wire", collective.wireBytes);
    field("parameter", collective.parameter);
    field("order", int64_t(collective.order));
    field("key", int64_t(collective.key));
    word("items");
    for (Id i = collective.items.begin; i < collective.items.end(); ++i) {
      number(program.items[i].shard);
      number(program.items[i].full);
    }
  }

  const Problem &problem;
  std::string text;
};

} // namespace

std::string fsdp::problem::print(const Problem &problem) {
  return Printer(problem).run();
}
