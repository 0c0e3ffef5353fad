//===- ParseProblem.cpp - Text becomes a problem --------------------------===//
#include "ProblemWords.h"
#include "fsdp/Schedule/ProblemText.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Target/Target.h"
#include <charconv>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

/// What all bytes of a program may add up to, so that no sum overflows.
constexpr int64_t kMostBytes = int64_t(1) << 60;

class Parser {
public:
  Parser(std::string_view text, const std::string &place)
      : text(text), place(place) {}

  Problem run() {
    nextLine();
    expect("fsdp.problem");
    if (integer("a version", 0) != 1)
      fail("only version 1 of this text can be read");
    while (nextLine())
      parseLine();
    finishProgram();
    if (problem.target.empty())
      fail("no line says the target");
    return std::move(problem);
  }

private:
  [[noreturn]] void fail(const std::string &why) const {
    throw Error(place + ":" + std::to_string(line) + ": " + why);
  }

  //===--- Words ----------------------------------------------------------===//

  /// Goes to the next line that has words.
  bool nextLine() {
    words.clear();
    at = 0;
    while (words.empty() && !text.empty()) {
      ++line;
      size_t end = text.find('\n');
      split(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return !words.empty();
  }

  void split(std::string_view rest) {
    size_t i = 0;
    while (i < rest.size()) {
      if (rest[i] <= 32) {
        ++i;
        continue;
      }
      size_t end = i + 1;
      if (rest[i] == '"') {
        end = rest.find('"', end);
        if (end == std::string_view::npos)
          fail("a name does not end");
        ++end;
      } else {
        while (end < rest.size() && rest[end] > 32)
          ++end;
      }
      words.push_back(rest.substr(i, end - i));
      i = end;
    }
  }

  bool isEnd() const { return at == words.size(); }

  std::string_view take(const char *what) {
    if (isEnd())
      fail(std::string("the line ends where ") + what + " should be");
    return words[at++];
  }

  bool consume(std::string_view word) {
    bool isNext = !isEnd() && words[at] == word;
    at += isNext;
    return isNext;
  }

  void expect(std::string_view word) {
    if (!consume(word))
      fail("'" + std::string(word) + "' should be " +
           (isEnd() ? "at the end"
                    : "in place of '" + std::string(words[at]) + "'"));
  }

  bool isNumber() const {
    return !isEnd() && (words[at][0] == '-' ||
                        (words[at][0] >= '0' && words[at][0] <= '9'));
  }

  int64_t integer(const char *what, int64_t least, int64_t most = kMostBytes) {
    std::string_view word = take(what);
    int64_t value = 0;
    auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size())
      fail(std::string(what) + " is no number: '" + std::string(word) + "'");
    if (value < least || value > most)
      fail(std::string(what) + " is " + std::to_string(value) +
           ", and may be " + std::to_string(least) + " to " +
           std::to_string(most));
    return value;
  }

  int64_t bytes(const char *what) {
    int64_t value = integer(what, 0, kMaxTensorBytes);
    total += value;
    if (total > kMostBytes)
      fail("the program has more than 2^60 bytes of values and workspaces");
    return value;
  }

  std::string quoted(const char *what) {
    std::string_view word = take(what);
    if (word.size() < 2 || word.front() != '"')
      fail(std::string(what) + " is a text in quotation marks, not '" +
           std::string(word) + "'");
    std::string value;
    for (size_t i = 1; i + 1 < word.size(); ++i) {
      if (word[i] != '\\') {
        value += word[i];
        continue;
      }
      unsigned byte = 0;
      const char *digits = word.data() + i + 1;
      if (i + 3 >= word.size() ||
          std::from_chars(digits, digits + 2, byte, 16).ptr != digits + 2)
        fail(std::string(what) +
             " has a backslash without two digits after it");
      value += static_cast<char>(byte);
      i += 2;
    }
    return value;
  }
  Id name(const char *what) { return problem.intern(quoted(what)); }

  template <size_t N>
  size_t choice(const char *what, const std::string_view (&from)[N]) {
    std::string_view word = take(what);
    for (size_t i = 0; i < N; ++i)
      if (from[i] == word)
        return i;
    fail(std::string(what) + " is not called '" + std::string(word) + "'");
  }

  //===--- Lines ----------------------------------------------------------===//

  void parseLine() {
    if (consume("op"))
      return parseOp();
    if (consume("target")) {
      problem.target = quoted("the target");
      if (!rt::findTarget(problem.target))
        fail("there is no target '" + problem.target + "'; there are " +
             rt::targetNames());
    } else if (consume("persistent")) {
      problem.persistentBytes = integer("persistent bytes", 0);
    } else if (consume("runs")) {
      Id step = name("the step");
      problem.steps.push_back({step, name("the program"),
                               integer("how often", 0, kMaxProgramRuns)});
    } else if (consume("ranks")) {
      problem.ranks = integer("ranks", 1, kMaxRanks);
    } else if (consume("tokens")) {
      problem.tokens = integer("tokens", 0);
    } else if (consume("kernel")) {
      parseKernel();
    } else if (consume("math")) {
      parseMath();
    } else if (consume("group")) {
      parseGroup();
    } else if (consume("program")) {
      finishProgram();
      total = 0;
      Program &program = problem.programs.emplace_back();
      program.name = name("the program");
      if (consume("own"))
        program.ownOutputBytes = integer("bytes", 0);
    } else if (consume("argument")) {
      Program &program = current();
      if (!program.ops.empty())
        fail("arguments come before the ops");
      program.arguments.push_back(name("the argument"));
      program.values.push_back({bytes("bytes"), kNone});
    } else if (consume("result")) {
      current().results.push_back(name("the result"));
    } else {
      fail("a line does not begin with '" + std::string(words[0]) + "'");
    }
    end();
  }

  void end() const {
    if (!isEnd())
      fail("'" + std::string(words[at]) + "' has no meaning here");
  }

  Program &current() {
    if (problem.programs.empty())
      fail("this is in no program; begin one with 'program'");
    return problem.programs.back();
  }

  void finishProgram() {
    if (problem.programs.empty())
      return;
    const Program &program = problem.programs.back();
    if (program.ops.empty() || program.ops.back().kind != OpKind::Return)
      fail("the program before does not end with 'op return'");
  }

  void parseKernel() {
    size_t known = problem.kernels.size();
    Kernel kernel;
    kernel.rows = integer("rows", 0);
    kernel.columns = integer("columns", 0);
    kernel.canFuse = consume("fuses");
    kernel.sumsRows = consume("sums_rows");
    if (kernel.sumsRows && kernel.rows % kRowBlock != 0)
      fail("sums of rows are of whole blocks of 32");
    if (!(CheckedSize(kernel.rows) * kernel.columns).fits(kMaxTensorBytes))
      fail("a kernel has at most 2^56 elements");
    kernel.isExpensive = consume("expensive");
    expect("results");
    while (!isEnd() && words[at] != "read")
      kernel.results.push_back(
          static_cast<Form>(choice("the form of a result", kFormWords)));
    while (consume("read")) {
      KernelRead read;
      read.operand = uint16_t(integer("an operand", 0, UINT16_MAX));
      read.access = static_cast<Access>(choice("an access", kAccessWords));
      read.inReduction = consume("reducing");
      if (consume("for"))
        read.forResults = uint32_t(integer("results", 0, UINT32_MAX));
      kernel.reads.push_back(read);
    }
    if (kernel.results.size() > 32)
      fail("a kernel has at most 32 results");
    if (problem.internKernel(kernel) != known)
      fail("this kernel is listed twice");
  }

  void parseMath() {
    size_t known = problem.maths.size();
    Math math;
    math.kind = static_cast<MathKind>(choice("what is computed", kMathWords));
    math.type = static_cast<rt::DType>(choice("its type", kTypeWords));
    bool isProduct = math.kind == MathKind::Product;
    if (!isProduct)
      math.flops = integer("flops", 0, INT64_MAX);
    if (isProduct || consume("heads")) {
      math.batch = integer("the batch", 0, kMaxTensorBytes);
      for (int64_t *size : {&math.m, &math.n, &math.k})
        *size = integer("a size", isProduct ? 0 : 1, kMaxTensorBytes);
    }
    // The operands that lie transposed.
    math.transposeLhs = isProduct && consume("lhs");
    math.transposeRhs = isProduct && consume("rhs");
    if (problem.internMath(math) != known)
      fail("this math is listed twice");
  }

  void parseGroup() {
    size_t known = problem.groups.size();
    RankGroup group;
    CheckedSize ranks = 1;
    while (isNumber()) {
      GroupAxis axis;
      axis.size = integer("ranks", 2, kMaxRanks);
      axis.stride = integer("the stride", 1, kMaxRanks);
      ranks *= axis.size;
      group.push_back(axis);
    }
    if (!ranks.fits(kMaxRanks))
      fail("a group has more than 2^20 ranks");
    if (problem.internGroup(group) != known)
      fail("this group is listed twice");
  }

  /// The number of a line before; `count` of them are there.
  Id reference(const char *what, size_t count) {
    return Id(integer(what, 0, int64_t(count) - 1));
  }

  //===--- Ops ------------------------------------------------------------===//

  void parseOp() {
    Program &program = current();
    if (!program.ops.empty() && program.ops.back().kind == OpKind::Return)
      fail("nothing comes after 'op return'");
    Op op;
    op.kind = static_cast<OpKind>(choice("the kind of an op", kKindWords));
    parseAddress(op);
    Id number = program.ops.size();
    op.operands.begin = program.operands.size();
    if (consume("takes"))
      while (isNumber())
        program.operands.push_back(Id(
            integer("a value before", 0, int64_t(program.values.size()) - 1)));
    op.operands.count = program.operands.size() - op.operands.begin;
    op.results.begin = program.values.size();
    if (consume("gives"))
      while (isNumber())
        program.values.push_back({bytes("bytes"), number});
    op.results.count = program.values.size() - op.results.begin;
    op.states.begin = program.states.size();
    if (consume("states"))
      while (!isEnd() && words[at][0] == '"')
        program.states.push_back(name("a tensor of the model"));
    op.states.count = program.states.size() - op.states.begin;
    if (consume("block"))
      op.block = name("the block");
    for (int flag = 0; flag < kOpFlags; ++flag)
      if (consume(kFlagWords[flag]))
        op.flags |= 1 << flag;
    if (op.kind == OpKind::Collective || op.is(kRegathered))
      parseCollective(op);
    else if (consume("detail"))
      op.detail = integer("the detail", -1, kMaxTensorBytes);
    if (consume("flops"))
      op.flops = integer("flops", 0, INT64_MAX);
    if (consume("bytes"))
      op.bytes = integer("bytes", 0, INT64_MAX);
    if (consume("workspace"))
      op.workspace = bytes("the workspace");
    if (consume("math"))
      op.math = reference("a math before", problem.maths.size());
    end();
    checkOp(op);
    program.ops.push_back(op);
    if (op.is(kRegathered))
      program.linkRegathered(op);
  }

  void parseAddress(Op &op) {
    std::string_view word = take("the phase");
    int phase = 0;
    while (phase < kPhases && phaseName(static_cast<Phase>(phase)) != word)
      ++phase;
    if (phase == kPhases)
      fail("no phase is called '" + std::string(word) + "'");
    op.phase = static_cast<Phase>(phase);
    bool hasPath = consume("path");
    if (hasPath)
      op.path = name("the path");
    expect("name");
    op.name = name("the name");
    if (consume("number"))
      op.index = uint32_t(integer("the number", 1, UINT32_MAX));
    if (!hasPath)
      op.path = problem.intern("");
  }

  void parseCollective(Op &op) {
    Program &program = current();
    Collective collective;
    std::string_view kinds[std::size(rt::kCollectiveNames)];
    for (size_t i = 0; i < std::size(kinds); ++i)
      kinds[i] = rt::kCollectiveNames[i];
    collective.kind =
        static_cast<rt::CollectiveKind>(choice("the collective", kinds));
    collective.reduce =
        static_cast<rt::ReduceKind>(choice("how it reduces", kReduceWords));
    collective.in = static_cast<rt::DType>(choice("its type", kTypeWords));
    collective.out = static_cast<rt::DType>(choice("its type", kTypeWords));
    collective.isFast = consume("fast");
    if (consume("ranks"))
      collective.ranks = integer("ranks", 1, kMaxRanks);
    if (consume("node"))
      collective.nodeRanks = nodeRanks(collective);
    if (consume("group"))
      collective.group = parseGroupOf(collective.ranks);
    if (consume("wire"))
      collective.wireBytes = integer("bytes", 0, INT64_MAX);
    if (consume("parameter"))
      collective.parameter = name("the parameter");
    if (consume("order"))
      collective.order = Id(integer("the order", 0, UINT32_MAX - 1));
    if (consume("key"))
      collective.key = Id(integer("the key", 0, UINT32_MAX - 1));
    expect("items");
    collective.items.begin = program.items.size();
    while (isNumber()) {
      int64_t shard = integer("elements", 0, kMaxTensorBytes);
      program.items.push_back({shard, integer("elements", 0, kMaxTensorBytes)});
      checkItem(program.items.back(), collective.ranks);
    }
    collective.items.count = program.items.size() - collective.items.begin;
    if (collective.items.count != op.operands.count ||
        collective.items.count != op.results.count ||
        collective.items.count == 0)
      fail(
          "a collective has as many operands, results and items, at least one");
    op.detail = int64_t(program.collectives.size());
    program.collectives.push_back(collective);
  }

  int64_t nodeRanks(const Collective &collective) {
    int64_t ranks =
        integer("ranks in a node", 2, std::max<int64_t>(collective.ranks, 2));
    bool isSum = !collective.isGather() && !collective.isFast &&
                 collective.reduce == rt::ReduceKind::Sum &&
                 collective.out == rt::DType::F32;
    if (!isSum || collective.ranks % ranks != 0)
      fail("only a sum to f32 over as many ranks in every node has ranks in a "
           "node");
    return ranks;
  }

  Id parseGroupOf(int64_t ranks) {
    Id group = reference("a group before", problem.groups.size());
    int64_t members = 1;
    for (GroupAxis axis : problem.groups[group])
      members *= axis.size;
    if (members != ranks)
      fail("group " + std::to_string(group) + " has " +
           std::to_string(members) + " ranks, the collective " +
           std::to_string(ranks));
    return group;
  }

  /// Its workspaces and padded buffers count too.
  void checkItem(const rt::CollectiveItem &item, int64_t ranks) {
    CheckedSize whole = CheckedSize(item.shard) * ranks;
    whole += item.full;
    whole += int64_t(1) << 13;
    whole = whole * 16;
    if (!whole.fits(kMaxTensorBytes))
      fail("a collective moves more than 2^56 bytes");
    total += whole.get();
    if (total > kMostBytes)
      fail("the program has more than 2^60 bytes of values and workspaces");
  }

  /// What order() relies on.
  void checkOp(const Op &op) const {
    auto require = [&](bool holds, const char *what) {
      if (!holds)
        fail("'op " + std::string(kKindWords[unsigned(op.kind)]) + "' has " +
             what);
    };
    Id operands = op.operands.count, results = op.results.count;
    require(!op.is(kRegathered) || op.kind == OpKind::Work,
            "the flag 'regathered', which is of 'op work'");
    require(!op.is(kAdjacent) ||
                (op.kind == OpKind::Join && op.is(kContiguous) && operands > 0),
            "the flag 'adjacent', which is of a contiguous 'op join' with "
            "operands");
    switch (op.kind) {
    case OpKind::Constant:
      return require(operands == 0 && results == 1,
                     "no operand and one result");
    case OpKind::Read:
      return require(operands == 0 && results == 1 && op.states.count == 1,
                     "one result and one state");
    case OpKind::Seed:
    case OpKind::View:
    case OpKind::Pad:
    case OpKind::Box:
      return require(operands == 1 && results == 1,
                     "one operand and one result");
    case OpKind::Kernel:
      return checkKernel(op);
    case OpKind::AddProduct:
      return require(
          operands >= 2 && results == 1 && op.detail >= 0 && op.detail <= 1,
          "two operands at least, one result and a detail of 0 or 1");
    case OpKind::Join:
      return require(results == 1, "one result");
    case OpKind::Accumulate:
      // A product is one of two operands.
      if (op.math != kNone)
        return require(operands == 2 && results == 0 && op.states.count == 1,
                       "two operands and one state");
      [[fallthrough]];
    case OpKind::Gradient:
    case OpKind::Write:
      return require(operands == 1 && results == 0 && op.states.count == 1,
                     "one operand and one state");
    case OpKind::Clear:
    case OpKind::Update:
      return require(results == 0 && op.states.count > 0,
                     "no result, and states");
    case OpKind::Return:
      return require(results == 0 &&
                         operands == problem.programs.back().results.size(),
                     "one operand for each result of the program");
    case OpKind::Work:
      return checkRegathered(op);
    case OpKind::Collective:
      return;
    }
  }

  /// A shard of what a gather gives: the only one that it is gathered again
  /// from.
  void checkRegathered(const Op &op) const {
    if (!op.is(kRegathered))
      return;
    const Program &program = problem.programs.back();
    const Collective &again = program.collective(op);
    Id def = program.values[program.operand(op, 0)].def;
    bool isOfOne = def != kNone && op.operands.count == 1 &&
                   program.ops[def].kind == OpKind::Collective &&
                   program.ops[def].results.count == 1;
    const Collective *of =
        isOfOne ? &program.collective(program.ops[def]) : nullptr;
    if (!of || !of->isGather() || !again.isGather() || of->again != kNone ||
        of->in != again.in || of->ranks % again.ranks != 0)
      fail("what is 'regathered' is a shard of what a gather of one tensor "
           "gives, and its only one, and a gather over a part of its ranks");
    for (const Op &other : program.ops)
      if (other.kind == OpKind::Seed)
        fail("what is 'regathered' comes before 'op seed'");
  }

  void checkKernel(const Op &op) const {
    if (op.detail < 0 || op.detail >= int64_t(problem.kernels.size()))
      fail("there is no kernel " + std::to_string(op.detail));
    const Kernel &kernel = problem.kernels[op.detail];
    if (kernel.results.size() != op.results.count)
      fail("kernel " + std::to_string(op.detail) + " has " +
           std::to_string(kernel.results.size()) + " results, the op " +
           std::to_string(op.results.count));
    for (const KernelRead &read : kernel.reads)
      if (read.operand >= op.operands.count)
        fail("kernel " + std::to_string(op.detail) + " reads operand " +
             std::to_string(read.operand) + ", which the op has not");
  }

  std::string_view text;
  const std::string &place;
  int line = 0;
  std::vector<std::string_view> words; // of the line
  size_t at = 0;
  int64_t total = 0; // bytes of the program
  Problem problem;
};

} // namespace

Problem fsdp::problem::parse(std::string_view text, const std::string &place) {
  return Parser(text, place).run();
}
