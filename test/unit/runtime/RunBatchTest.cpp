//===- RunBatchTest.cpp - What fsdp-run gives the programs of a step ------===//
#include "RunFixture.h"
#include "fsdp/Data/Safetensors.h"

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

// Two ranks that differ only along `tp` get the same windows and count once:
// the run is that of one rank.
TEST_F(Run, RanksOfOnePieceAreOne) {
  ASSERT_EQ(run(good(1, 20, "counted")).status, 0);
  std::vector<std::string> one = losses();
  json alone = summary();
  std::string sample = readWholeFile(folder.file("dump/sample.txt"), "");
  json manifest = tensorParallelManifest();
  // 512 classes, of which bytes are the first rank's.
  place(manifest, "logits", {2, 16, 512}, {"dp_shard", "", "tp"});
  compile("tensor-parallel", manifest.dump());
  // Nobody is to train such a model on bytes without meaning it.
  std::string arguments = good(2, 20, "counted");
  std::filesystem::remove_all(folder.file("dump"));
  expectFailure(
      run(arguments.replace(arguments.find("unigram2"), 8, "tensor-parallel")),
      "training.dataset is not set, bytes are 256 tokens, and the model's "
      "vocabulary has 512 tokens: if it has a tokenizer, tokenize the text "
      "with it and set training.dataset = tokens (docs/data.md shows "
      "how); to train on bytes, set training.dataset = bytes explicitly");
  EXPECT_EQ(lossesOf("tensor-parallel", " --training.dataset bytes"), one);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
  EXPECT_EQ(summary()["held_out_bits_per_byte"],
            alone["held_out_bits_per_byte"]);
  EXPECT_EQ(readWholeFile(folder.file("dump/sample.txt"), ""), sample);
}

// A placed loss is global and taken as it is; these ranks compute it wrong,
// each from its own rows, so that an average would show. The first gets the
// rows of a single rank.
TEST_F(Run, PlacedLossesAreNotAveraged) {
  ASSERT_EQ(run(good(1, 20, "counted")).status, 0);
  std::vector<std::string> one = losses();
  json manifest = unigramManifest(2);
  place(manifest, "tokens", {4, 16}, {"dp_shard", ""});
  place(manifest, "targets", {4, 16}, {"dp_shard", ""});
  compile("own-losses", manifest.dump());
  EXPECT_NE(lossesOf("own-losses"), one);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
  place(manifest, "loss", {}, {});
  compile("global-loss", manifest.dump());
  EXPECT_EQ(lossesOf("global-loss"), one);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
}

// Each rank has half of every window, and the last logits are the second's.
TEST_F(Run, SequencesAreCut) {
  json manifest = tensorParallelManifest();
  place(manifest, "tokens", {2, 32}, {"dp_shard", "tp"});
  place(manifest, "targets", {2, 32}, {"dp_shard", "tp"});
  place(manifest, "logits", {2, 32, 256}, {"dp_shard", "tp", ""});
  compile("sequence-parallel", manifest.dump());
  std::string artifact = shared->file("sequence-parallel");
  // Of random windows only their number is known.
  EXPECT_EQ(lossesOf("sequence-parallel").size(), 20u);
  EXPECT_EQ(summary()["held_out_predictions"], 249);
  EXPECT_EQ(readWholeFile(folder.file("dump/sample.txt"), "").size(), 64u + 20);
  // A whole batch is cut when it is loaded.
  std::vector<int32_t> tokens(64);
  for (int i = 0; i < 64; ++i)
    tokens[i] = i;
  std::string batch = folder.file("batch.safetensors");
  writeSafetensors(batch,
                   {{"tokens",
                     DType::I32,
                     {2, 32},
                     reinterpret_cast<const std::byte *>(tokens.data())}},
                   {});
  ASSERT_EQ(run(artifact + " -n 2 --program evaluate --load " + batch +
                " --dump " + folder.file("cut.st"))
                .status,
            0);
  for (int rank : {0, 1}) {
    SafetensorsFile dumped(
        folder.file("cut.rank" + std::to_string(rank) + ".st"));
    for (const TensorView &tensor : dumped.tensors())
      for (int i = 0; tensor.name == "tokens" && i < 32; ++i)
        EXPECT_EQ(reinterpret_cast<const int32_t *>(tensor.data)[i],
                  i / 16 * 32 + rank * 16 + i % 16);
  }
}

/// The manifest for one rank of a model with so many tokens.
static json manifestOfVocabulary(const char *size) {
  json manifest = unigramManifest(1);
  manifest["ranges"].erase(7); // logits, as of a loss in chunks
  manifest["programs"][1]["outputs"] = {"loss"};
  manifest["programs"][1]["writes"] = {"loss"};
  manifest["model"] = {{"family", "llama3"},
                       {"fields", {{"vocab_size", size}}}};
  return manifest;
}

// A batch that is given has the model's own tokens; a text has none for it.
TEST_F(Run, LoadedBatchesAskForNoVocabulary) {
  compile("small-vocabulary", manifestOfVocabulary("64").dump());
  std::string arguments = shared->file("small-vocabulary") +
                          " --training.dataset_path " + shared->file("text") +
                          " --training.steps 2 --lr_scheduler.warmup_steps=0 "
                          "--job.dump_folder " +
                          folder.file("dump");
  expectFailure(run(arguments),
                "training.dataset = bytes has 256 tokens, and the model's "
                "vocabulary has 64 tokens; train it on ids of its own with "
                "training.dataset = ids");
  std::vector<int32_t> ids(32, 63);
  const auto *data = reinterpret_cast<const std::byte *>(ids.data());
  std::string batch = folder.file("batch.safetensors");
  writeSafetensors(batch,
                   {{"tokens", DType::I32, {2, 16}, data},
                    {"targets", DType::I32, {2, 16}, data}},
                   {});
  arguments += " --load " + batch;
  expectFailure(
      run(arguments),
      "training.dataset = bytes has 256 tokens, and the model's vocabulary has "
      "64 tokens; with the batch of --load, set --validation.enable=false and "
      "generate no sample, so that no text is read");
  Outcome outcome = run(arguments + " --validation.enable false");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(metrics().size(), 2u);
}

// The default type of ids has no names for all of a large vocabulary.
TEST_F(Run, LargeVocabulariesAskForTheTypeOfIds) {
  compile("large-vocabulary", manifestOfVocabulary("128256").dump());
  std::string ids; // of 0 to 255, which are bytes too
  for (int i = 0; i < 1000; ++i)
    ids += {static_cast<char>(i % 251), '\0'};
  std::string arguments = shared->file("large-vocabulary") +
                          " --training.dataset ids --training.dataset_path " +
                          folder.write("ids", ids) +
                          " --training.steps 2 --lr_scheduler.warmup_steps=0 "
                          "--job.dump_folder " +
                          folder.file("dump");
  expectFailure(run(arguments),
                "training.ids_dtype is not set, its default u16 ends at id "
                "65535, and the model's vocabulary has 128256 tokens: set "
                "training.ids_dtype = \"u32\" or \"i32\", whichever the file "
                "has; set \"u16\" explicitly for a file of only lower ids");
  Outcome outcome = run(arguments + " --training.ids_dtype u16");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(Run, InputsThatCannotBeFilled) {
  auto expectRefused = [&](const json &manifest, const std::string &message) {
    compile("refused", manifest.dump());
    std::string arguments = good(2, 5);
    expectFailure(
        run(arguments.replace(arguments.find("unigram2"), 8, "refused")),
        message);
  };
  json manifest = tensorParallelManifest();
  place(manifest, "targets", {2, 32}, {"dp_shard", "tp"});
  expectRefused(manifest, "the artifact's inputs 'tokens' and 'targets' differ "
                          "in shape or placement; it cannot train on text");
  manifest = tensorParallelManifest();
  place(manifest, "logits", {16384}, {"tp"});
  for (json &range : manifest["ranges"])
    if (range["name"] == "logits")
      range["shape"] = {8192};
  const std::string noSample =
      "the artifact's logits are not placed as those of all its tokens, "
      "[batch, sequence, vocabulary]; --sample.length=0 trains without a "
      "sample";
  expectRefused(manifest, noSample);
  // Half of every window, and logits that do not say so.
  manifest = tensorParallelManifest();
  place(manifest, "tokens", {2, 32}, {"dp_shard", "tp"});
  place(manifest, "targets", {2, 32}, {"dp_shard", "tp"});
  expectRefused(manifest, noSample);
  manifest = tensorParallelManifest();
  for (json &range : manifest["ranges"])
    if (range["name"] == "tokens")
      range["placement"]["dims"][0]["storage"] = {"tp"},
      range["full"] = {4, 16};
  expectRefused(manifest, "the artifact's input 'tokens' has storage axes, "
                          "which only parameters have");
}

TEST_F(Run, DumpsAndLoadsRanges) {
  std::string state = folder.file("state.safetensors");
  ASSERT_EQ(run(good(1, 5) + " --dump " + state).status, 0);
  SafetensorsFile dumped(folder.file("state.rank0.safetensors"));
  EXPECT_EQ(dumped.tensors().size(), 8u);
  // The program "evaluate" alone, on the loaded state: its logits are w.
  std::string arguments = shared->file("unigram1") + " --program evaluate";
  Outcome outcome =
      run(arguments + " --load " + state + " --dump " + folder.file("e.st"));
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.find("program 'evaluate', rank 0 of 1:\n"
                             "  loss: f32: "),
            0u)
      << outcome.out;
  EXPECT_NE(outcome.out.find("\n  logits: f32 2x16x256: min "),
            std::string::npos);
  SafetensorsFile evaluated(folder.file("e.rank0.st"));
  std::map<std::string, const float *> values;
  for (const TensorView &tensor : evaluated.tensors())
    values[tensor.name] = reinterpret_cast<const float *>(tensor.data);
  for (int i = 0; i < 512; ++i)
    EXPECT_EQ(values["logits"][i], values["w"][i % 256]);
  EXPECT_NE(values["w"]['a'], 0.0f);
}

// Before any rank is started, and its library opened.
TEST_F(Run, ValidationNeedsAProgram) {
  json manifest = unigramManifest(2);
  json programs = json::array();
  for (const json &program : manifest["programs"])
    if (program["name"] != "evaluate")
      programs.push_back(program);
  manifest["programs"] = programs;
  compile("no-evaluate", manifest.dump());
  std::string arguments = shared->file("no-evaluate") +
                          " -n 2 --training.steps=2 --training.dataset_path " +
                          shared->file("text") + " --job.dump_folder " +
                          folder.file("dump");
  expectFailure(
      run(arguments + " --validation.enable true --validation.freq 1"),
      "validation.freq = 1, but the artifact has no program "
      "'evaluate'; --validation.freq=0 trains without validation");
}

// A single program needs no batch of text, whatever the steps.
TEST_F(Run, ProgramsOfAStepRunWithoutTokens) {
  json manifest = unigramManifest(1);
  manifest["ranges"][1]["name"] = "x";
  for (json &program : manifest["programs"])
    program["inputs"][0] = program["reads"][1] = "x";
  manifest["steps"]["train"][0]["times"] = 4;
  manifest["runs"]["train"]["train"] = 4;
  compile("no-tokens", manifest.dump());
  Outcome outcome = run(shared->file("no-tokens") + " --program evaluate");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

// Inputs in the loaded file replace the sampled windows.
TEST_F(Run, LoadedBatchesAreFixed) {
  std::vector<int32_t> tokens(32, 'a'), targets(32, 'b');
  auto bytes = [](const std::vector<int32_t> &values) {
    return reinterpret_cast<const std::byte *>(values.data());
  };
  std::string batch = folder.file("batch.safetensors");
  writeSafetensors(batch,
                   {{"tokens", DType::I32, {2, 16}, bytes(tokens)},
                    {"targets", DType::I32, {2, 16}, bytes(targets)}},
                   {});
  ASSERT_EQ(run(good(1, 100) + " --load " + batch).status, 0);
  EXPECT_LT(metrics().back()["loss"], 0.1);
}
