//===- ConfigNeutral.cpp - torchtitan's keys that change nothing ----------===//
//
// A run description written for torchtitan states features that it leaves off.
// Such a key is accepted with the values that say so, and refused with others:
// what is asked for is never dropped. Keys that matter only while a feature is
// on may hold anything, since the feature's own key keeps it off.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Config/RunConfig.h"

using namespace fsdp;

const std::vector<NeutralKey> &fsdp::neutralKeys() {
  const char *const noProfile = "no profile is written";
  const char *const noTensorBoard = "metrics go to metrics.jsonl";
  const char *const noTokenizer = "bytes are tokens";
  const char *const noConverters = "no layer is converted";
  const char *const noOffload = "everything stays in the arena";
  const char *const noTensors = "there is no tensor parallelism";
  const char *const noPipeline = "there is no pipeline parallelism";
  const char *const noContext = "there is no context parallelism";
  const char *const noExperts = "there are no experts";
  const char *const noRecompute = "activations are not recomputed";
  const char *const compiled = "every program is compiled ahead of time";
  const char *const noFloat8 = "there is no Float8";
  const char *const noPython = "there is no Python";
  const char *const sameBits = "a run always gives the same bits";
  static const std::vector<NeutralKey> keys = {
      {"job.print_args", {"false"}, "the arguments are not printed"},
      {"job.print_config", {"false"}, "the settings are not printed"},
      {"job.custom_config_module", {"\"\""}, noPython},
      {"profiling.enable_profiling", {"false"}, noProfile},
      {"profiling.save_traces_folder", {}, noProfile},
      {"profiling.profile_freq", {}, noProfile},
      {"profiling.profiler_active", {}, noProfile},
      {"profiling.profiler_warmup", {}, noProfile},
      {"profiling.enable_memory_snapshot", {"false"}, noProfile},
      {"profiling.save_memory_snapshot_folder", {}, noProfile},
      {"metrics.enable_tensorboard", {"false"}, noTensorBoard},
      {"metrics.enable_wandb", {"false"}, noTensorBoard},
      {"metrics.save_tb_folder", {}, noTensorBoard},
      {"metrics.save_for_all_ranks", {"false"}, noTensorBoard},
      {"metrics.disable_color_printing", {}, "nothing is coloured"},
      {"model.tokenizer_path", {"\"\""}, noTokenizer},
      {"model.converters", {"[]"}, noConverters},
      {"model.print_after_conversion", {}, noConverters},
      {"optimizer.implementation",
       {"\"fused\"", "\"foreach\"", "\"for-loop\""},
       "one kernel updates all parameters"},
      {"optimizer.early_step_in_backward",
       {"false"},
       "the update follows the backward pass"},
      {"training.enable_cpu_offload", {"false"}, noOffload},
      {"training.dtype", {"\"float32\""}, "parameters are kept in f32"},
      {"training.compile", {}, compiled},
      {"training.gc_freq", {}, noPython},
      {"training.gc_debug", {}, noPython},
      {"training.deterministic", {}, sameBits},
      {"parallelism.enable_compiled_autograd", {}, compiled},
      {"parallelism.enable_async_tensor_parallel", {"false"}, noTensors},
      {"parallelism.pipeline_parallel_degree", {"1"}, noPipeline},
      {"parallelism.pipeline_parallel_split_points", {}, noPipeline},
      {"parallelism.module_fqns_per_model_part", {}, noPipeline},
      {"parallelism.pipeline_parallel_first_stage_less_layers", {}, noPipeline},
      {"parallelism.pipeline_parallel_last_stage_less_layers", {}, noPipeline},
      {"parallelism.pipeline_parallel_layers_per_stage", {}, noPipeline},
      {"parallelism.pipeline_parallel_schedule", {}, noPipeline},
      {"parallelism.pipeline_parallel_schedule_csv", {}, noPipeline},
      {"parallelism.pipeline_parallel_microbatch_size", {}, noPipeline},
      {"parallelism.context_parallel_degree", {"1"}, noContext},
      {"parallelism.context_parallel_rotate_method", {}, noContext},
      {"parallelism.expert_parallel_degree", {"1"}, noExperts},
      {"parallelism.expert_tensor_parallel_degree", {"1"}, noExperts},
      {"checkpoint.enable_checkpoint",
       {"false"},
       "checkpoint.enable is its name"},
      {"activation_checkpoint.mode", {"\"none\""}, noRecompute},
      {"activation_checkpoint.selective_ac_option", {}, noRecompute},
      {"activation_checkpoint.early_stop", {}, noRecompute},
      {"compile.enable", {"true", "false"}, compiled},
      {"compile.components", {}, compiled},
      {"compile.backend", {}, compiled},
      {"float8.enable_fsdp_float8_all_gather", {"false"}, noFloat8},
      {"float8.precompute_float8_dynamic_scale_for_fsdp", {"false"}, noFloat8},
      {"float8.recipe_name", {"\"\""}, noFloat8},
      {"float8.filter_fqns", {}, noFloat8},
      {"float8.emulate", {"false"}, noFloat8},
      {"quantize.linear.float8.enable_fsdp_float8_all_gather",
       {"false"},
       noFloat8},
      {"quantize.linear.float8.precompute_float8_dynamic_scale_for_fsdp",
       {"false"},
       noFloat8},
      {"quantize.linear.float8.recipe_name", {"\"\""}, noFloat8},
      {"quantize.linear.float8.filter_fqns", {}, noFloat8},
      {"quantize.linear.float8.emulate", {"false"}, noFloat8},
      {"memory_estimation.enabled", {"false"}, "the arena is exact"},
      {"memory_estimation.enable", {"false"}, "the arena is exact"},
      {"memory_estimation.disable_fake_mode", {}, "the arena is exact"},
      {"fault_tolerance.enable", {"false"}, "a lost rank ends the job"},
      {"experimental.custom_import", {"\"\""}, noPython},
      {"experimental.custom_args_module", {"\"\""}, noPython},
      {"validation.steps", {"-1"}, "the whole held-out text is evaluated"},
      {"debug.deterministic", {}, sameBits},
      {"debug.moe_force_load_balance", {}, noExperts},
  };
  return keys;
}
