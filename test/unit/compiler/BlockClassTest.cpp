//===- BlockClassTest.cpp - Blocks of one structure -----------------------===//
#include "fsdp/Schedule/ProblemText.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

/// A chain of blocks between an embedding and a head, each a product with a
/// weight.
class Chain {
public:
  Chain() { add("work", "embed", "", "takes 0 gives 64"); }

  /// Gives the value of its weight.
  unsigned block(const std::string &name, int flops,
                 const std::string &weight = "") {
    std::string state = weight.empty() ? name + ".weight" : weight;
    unsigned read =
        add("read", "read", name, "gives 128 states \"" + state + "\"");
    last = add("work", "linear", name,
               "takes " + std::to_string(last) + " " + std::to_string(read) +
                   " gives 64",
               "flops " + std::to_string(flops));
    return read;
  }

  /// The classes: "a b | c", after a head that also takes `other`.
  std::string classes(unsigned other = 0) {
    last = add("work", "head", "",
               "takes " + std::to_string(last) + " " + std::to_string(other) +
                   " gives 4");
    Problem problem = parse(text + "op return fwd name \"return\"\n", "chain");
    std::string found;
    for (const BlockClass &one :
         blockClassesOf(problem, problem.programs.front())) {
      found += found.empty() ? "" : " |";
      for (Id block : one.blocks)
        (found += found.empty() ? "" : " ") += problem.text(block);
    }
    return found;
  }

private:
  unsigned add(const std::string &kind, const std::string &name,
               const std::string &block, const std::string &values,
               const std::string &cost = "") {
    text += "op " + kind + " fwd name \"" + name + "\" " + values;
    text += block.empty() ? "" : " block \"" + block + "\"";
    text += cost.empty() ? "\n" : " " + cost + "\n";
    return ++count;
  }

  std::string text = "fsdp.problem 1\ntarget \"test\"\nprogram \"train\"\n"
                     "argument \"x\" 64\n";
  unsigned count = 0; // the last one; the argument is 0
  unsigned last = 1;
};

TEST(BlockClasses, TheFirstAndTheLastAreApart) {
  Chain chain;
  for (const char *name : {"a", "b", "c", "d", "e"})
    chain.block(name, 8);
  EXPECT_EQ(chain.classes(), "b c d | a | e");
}

TEST(BlockClasses, NamesOfWeightsDoNotMatter) {
  Chain chain;
  for (const char *name : {"a", "b", "c", "d", "e"})
    chain.block(name, 8, "shared");
  EXPECT_EQ(chain.classes(), "b c d | a | e");
}

TEST(BlockClasses, ABlockWhoseWeightIsTiedToTheHeadIsApart) {
  Chain chain;
  unsigned tied = 0;
  for (const char *name : {"a", "b", "c", "d", "e"}) {
    unsigned weight = chain.block(name, 8);
    tied = name == std::string("c") ? weight : tied;
  }
  EXPECT_EQ(chain.classes(tied), "b d | a | c | e");
}

TEST(BlockClasses, StructuresThatAlternateAreTwoClasses) {
  Chain chain;
  for (const char *name : {"a", "b", "c", "d", "e", "f"})
    chain.block(name, *name % 2 ? 8 : 16);
  EXPECT_EQ(chain.classes(), "b d | c e | a | f");
}

TEST(BlockClasses, FewBlocks) {
  EXPECT_EQ(Chain().classes(), "");
  Chain chain;
  chain.block("a", 8);
  EXPECT_EQ(chain.classes(), "a");
}

} // namespace
