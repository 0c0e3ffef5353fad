//===- AfterEachPass.h - Looks at a module between passes -------*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_COMPILER_AFTEREACHPASS_H
#define FSDP_TEST_UNIT_COMPILER_AFTEREACHPASS_H

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include <functional>

namespace fsdp {

/// Calls `visit` after every pass.
class AfterEachPass : public mlir::PassInstrumentation {
public:
  using Visit = std::function<void(llvm::StringRef name)>;
  explicit AfterEachPass(Visit visit) : visit(std::move(visit)) {}

  void runAfterPass(mlir::Pass *pass, mlir::Operation *) override {
    // What brings a pass to the functions of a module has no name.
    if (!pass->getArgument().empty())
      visit(pass->getArgument());
  }

private:
  Visit visit;
};

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_AFTEREACHPASS_H
