//===- AttributeTest.cpp - Attributes of every other kind -----------------===//
//
// Each attribute of each op of our dialects in turn is one of every other kind:
// an integer, a text, a list, nothing at all. So are the attributes that our
// dialects put on ops of others, on every sort of op. The verifiers refuse it
// with a message, or the module can be printed and all that reads it runs to
// its end: with a result or with an error, but without an assertion.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Emit/EmitManifest.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "passes/Pipelines.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/PrettyStackTrace.h"
#include <gtest/gtest.h>

using namespace fsdp;
using namespace mlir;

namespace {

/// What our dialects hang on modules, programs, arguments and ops.
const StringRef kDiscardable[] = {nn::kNameAttr,
                                  nn::kFrozenAttr,
                                  nn::kStateOfAttr,
                                  nn::kStepsAttr,
                                  nn::kModelAttr,
                                  nn::kModuleAttr,
                                  nn::kResidualAttr,
                                  nn::kComputeCopyOfAttr,
                                  dist::kPlacementAttr,
                                  dist::kLocalAttr,
                                  dist::kPlanAttr,
                                  dist::kParametersAttr,
                                  dist::kOriginAttr,
                                  dist::kMembersAttr,
                                  dist::kSemanticDigestAttr,
                                  dist::kDecisionAttr,
                                  exec::kPersistentBytesAttr,
                                  exec::kArenaBytesAttr,
                                  exec::kTargetAttr,
                                  exec::kThreadsAttr,
                                  exec::kInputsAttr,
                                  exec::kOutputsAttr,
                                  exec::kReadsAttr,
                                  exec::kWritesAttr,
                                  exec::kAddsAttr,
                                  exec::kClearsAttr,
                                  exec::kStepsAttr,
                                  exec::kFlopsAttr,
                                  exec::kProducesAttr};

/// One attribute of every kind.
SmallVector<Attribute> everyKind(MLIRContext *context) {
  const char *texts[] = {"unit",
                         "true",
                         "7 : i64",
                         "-1 : i32",
                         "9223372036854775807 : i64",
                         "7 : i128",
                         "7 : index",
                         "0.5 : f64",
                         "0x7FC00000 : f32",
                         "\"text\"",
                         "\"\"",
                         "[]",
                         "[3]",
                         "[\"a\", 3]",
                         "[{}]",
                         "[[]]",
                         "{}",
                         "{a = 3 : i64}",
                         "{train = [3]}",
                         "@w",
                         "@a::@b",
                         "f32",
                         "tensor<2x3xf32>",
                         "tensor<?xf32>",
                         "memref<*xf32>",
                         "() -> ()",
                         "dense<1> : tensor<2xi32>",
                         "array<i64: 1>",
                         "array<i32: -7, 2147483647>",
                         "array<i64>",
                         "affine_map<(d0) -> (d0)>",
                         "#nn.zeros",
                         "#nn.action<@train times 2>",
                         "#fsdp.placement<[{}]>",
                         "#fsdp.placement<[]>",
                         "#fsdp.decision<>",
                         "#fsdp.decision<merge = false, prefetch = "
                         "9223372036854775807, start_after = \"nothing\", "
                         "recompute = true, again = <overlap = true>>"};
  SmallVector<Attribute> kinds;
  for (const char *text : texts) {
    kinds.push_back(parseAttribute(text, context));
    EXPECT_TRUE(kinds.back()) << text;
  }
  return kinds;
}

/// A text and how far it is brought before its attributes change.
struct Input {
  const char *name, *path;
  enum { Text, Scheduled, Planned } stage;
};

void PrintTo(const Input &input, std::ostream *os) { *os << input.name; }

const Input kInputs[] = {
    {"nn", "dialects/nn/ops.mlir", Input::Text},
    {"fsdp", "dialects/fsdp/ops.mlir", Input::Text},
    {"exec", "dialects/exec/ops.mlir", Input::Text},
    {"schedule", "passes/nn-accumulate.mlir", Input::Scheduled},
    {"planned", "passes/nn-accumulate.mlir", Input::Planned}};

class AttributesOf : public testing::TestWithParam<Input> {
protected:
  void SetUp() override {
    DialectRegistry registry;
    registerFsdpDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      messages += diagnostic.str() + "\n";
      return success();
    });
    kinds = everyKind(&context);
    std::string path = std::string(FSDP_GOLDEN_DIR) + "/../" + GetParam().path;
    auto buffer = llvm::MemoryBuffer::getFile(path);
    ASSERT_TRUE(buffer) << path;
    whole = parseSourceString<ModuleOp>((*buffer)->getBuffer(), &context);
    ASSERT_TRUE(whole) << messages;
    if (GetParam().stage != Input::Text) {
      ASSERT_TRUE(succeeded(bring())) << messages;
    }
  }

  /// Runs the passes up to the stage of the input.
  LogicalResult bring() {
    PassManager passes(&context);
    passes.addPass(createAccumulate());
    passes.addPass(createPropagate());
    passes.addPass(createExpand());
    passes.addNestedPass<func::FuncOp>(createAddress());
    passes.addPass(createPlan());
    passes.addPass(createRemat());
    passes.addPass(createBucket());
    passes.addPass(createOverlap());
    passes.addNestedPass<func::FuncOp>(createFuse());
    if (GetParam().stage == Input::Planned) {
      passes.addPass(createExecLower());
      passes.addPass(createPlanMemory());
      passes.addPass(createSynchronize());
    }
    return passes.run(*whole);
  }

  /// Calls `visit` with a module for every program: it, and what all share.
  void forEachProgram(llvm::function_ref<void(ModuleOp)> visit) {
    auto isProgram = [](Operation &op) {
      return isa<func::FuncOp, exec::ProgramOp>(op);
    };
    size_t programs = llvm::count_if(*whole->getBody(), isProgram);
    for (size_t kept = 0; kept < programs; ++kept) {
      OwningOpRef<ModuleOp> part = whole->clone();
      size_t number = 0;
      for (Operation &op : llvm::make_early_inc_range(*part->getBody()))
        if (isProgram(op) && number++ != kept)
          op.erase();
      // A step may run what is no longer there.
      if (failed(verify(*part)))
        (*part)->removeAttr(nn::kStepsAttr);
      messages.clear();
      ASSERT_TRUE(succeeded(verify(*part))) << messages;
      visit(*part);
    }
  }

  /// Tries every kind in place of the attribute `name` of `op`, and of what is
  /// in its lists and dictionaries.
  void mutate(ModuleOp module, Operation *op, StringAttr name) {
    DictionaryAttr before = attributesOf(op);
    auto put = [&](Attribute changed) {
      NamedAttrList list(before);
      list.set(name, changed);
      attempt(module, op, list.getDictionary(&context), name);
      EXPECT_TRUE(set(op, before)) << messages;
    };
    Attribute was = before.get(name);
    for (Attribute kind : kinds)
      if (kind != was)
        put(kind);
    forEachChange(was, put);
  }

  /// Calls `put` with `was` in which one entry is of another kind.
  void forEachChange(Attribute was, llvm::function_ref<void(Attribute)> put) {
    Builder builder(&context);
    if (auto list = dyn_cast_or_null<ArrayAttr>(was); list && !list.empty()) {
      // The entries of a list are alike.
      auto putFirst = [&](Attribute changed) {
        SmallVector<Attribute> entries(list.begin(), list.end());
        entries[0] = changed;
        put(builder.getArrayAttr(entries));
      };
      for (Attribute kind : kinds)
        putFirst(kind);
      forEachChange(list[0], putFirst);
    } else if (auto fields = dyn_cast_or_null<DictionaryAttr>(was)) {
      for (NamedAttribute field : fields) {
        auto putField = [&](Attribute changed) {
          NamedAttrList other(fields);
          other.set(field.getName(), changed);
          put(other.getDictionary(&context));
        };
        for (Attribute kind : kinds)
          putField(kind);
        forEachChange(field.getValue(), putField);
      }
    }
  }

  /// All attributes of `op` as one dictionary, as its generic form has them.
  DictionaryAttr attributesOf(Operation *op) {
    NamedAttrList list(op->getDiscardableAttrDictionary());
    if (auto own =
            dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
      list.append(own);
    return list.getDictionary(&context);
  }

  /// Sets them as the parser of the generic form does; false, with a message,
  /// if the op takes them not.
  bool set(Operation *op, DictionaryAttr attributes) {
    NamedAttrList own, others;
    auto known =
        dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
    for (NamedAttribute attribute : attributes) {
      bool isOwn = (known && known.contains(attribute.getName())) ||
                   llvm::is_contained(op->getName().getAttributeNames(),
                                      attribute.getName());
      (isOwn ? own : others).push_back(attribute);
    }
    op->setDiscardableAttrs(others.getDictionary(&context));
    return own.empty() ||
           succeeded(op->setPropertiesFromAttribute(
               own.getDictionary(&context), [&] { return op->emitOpError(); }));
  }

  void attempt(ModuleOp module, Operation *op, DictionaryAttr attributes,
               StringAttr name) {
    messages.clear();
    std::string what = op->getName().getStringRef().str() + ": " + name.str() +
                       " = " + text(attributes.get(name));
    // Printed where an assertion fails.
    llvm::PrettyStackTraceString trace(what.c_str());
    ++tries;
    if (!set(op, attributes) || failed(verify(module))) {
      EXPECT_NE(messages, "") << what;
      return;
    }
    ++valid;
    use(module);
  }

  static std::string text(Attribute attribute) {
    std::string text;
    llvm::raw_string_ostream(text) << attribute;
    return text;
  }

  /// Runs what reads a module.
  void use(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    module->print(stream);
    module->print(stream, OpPrintingFlags().printGenericOpForm());
    if (module.getOps<func::FuncOp>().empty()) {
      (void)makeManifest(module, {});
      run(module, [](PassManager &passes) { passes.addPass(createOutline()); });
      run(module,
          [](PassManager &passes) { passes.addPass(createVerifyExec()); });
      run(module, [](PassManager &passes) {
        passes.addPass(createPlanMemory());
        passes.addPass(createSynchronize());
      });
      return;
    }
    run(module, [](PassManager &passes) {
      passes.addPass(createCanonicalizerPass());
      passes.addPass(createCSEPass());
      passes.addPass(createPropagate());
      passes.addPass(createExpand());
    });
    run(module, [](PassManager &passes) {
      passes.addNestedPass<func::FuncOp>(createAddress());
      passes.addPass(createPlan());
      passes.addPass(createRemat());
      passes.addPass(createBucket());
      passes.addPass(createOverlap());
      passes.addNestedPass<func::FuncOp>(createFuse());
    });
    run(module,
        [](PassManager &passes) { passes.addPass(createVerifySchedule()); });
    run(module, [](PassManager &passes) {
      passes.addPass(createExecLower());
      passes.addPass(createPlanMemory());
    });
  }

  /// Runs passes on a copy; what they refuse they say.
  void run(ModuleOp module, llvm::function_ref<void(PassManager &)> add) {
    OwningOpRef<ModuleOp> copy = module.clone();
    PassManager passes(&context);
    passes.enableVerifier(false);
    add(passes);
    messages.clear();
    if (failed(passes.run(*copy))) {
      EXPECT_NE(messages, "");
      return;
    }
    EXPECT_TRUE(succeeded(verify(*copy))) << messages;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> whole;
  SmallVector<Attribute> kinds;
  std::string messages;
  int tries = 0, valid = 0;
};

bool isOurs(Operation *op) {
  return isa<nn::NNDialect, dist::FsdpDialect, exec::ExecDialect>(
      op->getDialect());
}

} // namespace

// The attributes that an op has, once for each kind of op and attribute.
TEST_P(AttributesOf, AnOp) {
  llvm::StringSet<> seen;
  forEachProgram([&](ModuleOp module) {
    SmallVector<std::pair<Operation *, StringAttr>> places;
    module.walk([&](Operation *op) {
      for (NamedAttribute attribute : attributesOf(op)) {
        std::string key = op->getName().getStringRef().str() + " " +
                          attribute.getName().str();
        bool isOwn = isOurs(op) || attribute.getNameDialect() ||
                     attribute.getName().getValue().ends_with("_attrs");
        if (isOwn && seen.insert(key).second)
          places.push_back({op, attribute.getName()});
      }
    });
    for (auto [op, name] : places)
      mutate(module, op, name);
  });
  std::printf("%d attributes, %d valid\n", tries, valid);
  EXPECT_GT(tries, 100);
}

// Those that our dialects may put on any op, once for each kind of op.
TEST_P(AttributesOf, AnyOp) {
  llvm::StringSet<> seen;
  forEachProgram([&](ModuleOp module) {
    SmallVector<Operation *> places;
    module.walk([&](Operation *op) {
      // Ops of one dialect that stand at one depth are alike.
      std::string sort =
          (op->getName().getDialectNamespace() + Twine(op->getNumRegions()) +
           (op->getParentOp() && isa<ModuleOp>(op->getParentOp())
                ? op->getName().getStringRef()
                : ""))
              .str();
      if (seen.insert(sort).second)
        places.push_back(op);
    });
    for (Operation *op : places)
      for (StringRef name : kDiscardable)
        if (!attributesOf(op).contains(name))
          mutate(module, op, StringAttr::get(&context, name));
  });
  std::printf("%d attributes, %d valid\n", tries, valid);
  EXPECT_GT(tries, 100);
}

INSTANTIATE_TEST_SUITE_P(Dialects, AttributesOf, testing::ValuesIn(kInputs),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });
