//===- Commands.h - What fsdp-checkpoint can do -----------------*- C++ -*-===//
#ifndef FSDP_TOOLS_CHECKPOINT_COMMANDS_H
#define FSDP_TOOLS_CHECKPOINT_COMMANDS_H

#include <CLI/CLI.hpp>
#include <functional>

namespace fsdp::checkpoint {

/// A command: `declare` adds its options to its parser and returns what runs it
/// afterwards and gives the exit status.
struct Command {
  const char *name, *help;
  std::function<int()> (*declare)(CLI::App &app);
};

std::function<int()> declareConvert(CLI::App &app);
std::function<int()> declareInspect(CLI::App &app);
std::function<int()> declareVerify(CLI::App &app);
std::function<int()> declareDiff(CLI::App &app);
std::function<int()> declarePrune(CLI::App &app);
std::function<int()> declareExport(CLI::App &app);

/// Names the steps of a folder that are damaged, what of them, and `then`: what
/// was done with them. Returns whether there are any.
bool warnOfDamage(const std::string &folder, const char *then);

/// Of an option that openTensorStore opens.
inline constexpr char kPathHelp[] =
    "directory of a step, a folder of steps (the newest committed one is "
    "taken), or a directory of Hugging Face or torch.distributed.checkpoint";

} // namespace fsdp::checkpoint

#endif // FSDP_TOOLS_CHECKPOINT_COMMANDS_H
