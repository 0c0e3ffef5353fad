//===- MachineFileTest.cpp - Machine files and software profiles ----------===//
#include "TemporaryFolder.h"
#include "fsdp/Machine/CostModel.h"
#include "fsdp/Support/AtomicFile.h"
#include "lib/Machine/FileKeys.h"

using namespace fsdp;
using namespace fsdp::test;

/// The least that a machine says.
static const std::string kSmallMachine = R"(name = "small"
[device]
memory_bytes = 16e9
ranks_per_node = 4
[compute]
f32 = 1e12
bf16 = 2e12
[matmul]
share = 0.8
[attention]
forward = 0.5
backward = 0.4
[memory]
bytes_per_second = 100e9
share = 0.9
)";

static Machine smallWith(const std::string &text) {
  return readMachine(kSmallMachine + text, "small.toml");
}
static std::string smallError(const std::string &text) {
  return messageOf([&] { smallWith(text); });
}
static std::string machineError(const std::string &text) {
  return messageOf([&] { readMachine(text, "m.toml"); });
}

TEST(MachineFile, BuiltInsReadWhatTheyWrite) {
  ASSERT_GE(builtInMachines().size(), 10u);
  for (const std::string &name : builtInMachines()) {
    Machine machine = loadMachine(name);
    EXPECT_EQ(machine.name, name);
    EXPECT_FALSE(machine.description.empty()) << name;
    std::string text = toToml(machine);
    Machine again = readMachine(text, "again.toml");
    EXPECT_EQ(toToml(again), text) << name;
    EXPECT_EQ(fingerprintOf(again), fingerprintOf(machine)) << name;
  }
  for (const std::string &name : builtInProfiles()) {
    SoftwareProfile profile = loadProfile(name);
    EXPECT_EQ(profile.name, name);
    std::string text = toToml(profile);
    SoftwareProfile again = readProfile(text, "again.toml");
    EXPECT_EQ(toToml(again), text) << name;
    EXPECT_EQ(fingerprintOf(again), fingerprintOf(profile)) << name;
  }
}

TEST(MachineFile, FindsFilesByNameAndByPath) {
  TemporaryFolder folder;
  std::string path = folder.write("mine.toml", kSmallMachine);
  EXPECT_EQ(loadMachine(path).name, "small");
  EXPECT_EQ(messageOf([] { loadMachine("h10"); }).substr(0, 64),
            "the machine 'h10' is not built in; did you mean 'h100'? Built in");
  EXPECT_NE(messageOf([&] {
              loadMachine(folder.file("none.toml"));
            }).find("none.toml"),
            std::string::npos);
  EXPECT_EQ(messageOf([] { loadMachine("/dev/zero"); }),
            "the machine '/dev/zero' is not a regular file; copy it into one");
  std::string large =
      folder.write("large.toml", std::string((1 << 20) + 1, '#'));
  EXPECT_NE(messageOf([&] { loadMachine(large); }).find("more than 1 MiB"),
            std::string::npos);
  EXPECT_EQ(messageOf([] { loadProfile("torch-eagr"); }).substr(0, 71),
            "the profile 'torch-eagr' is not built in; did you mean "
            "'torch-eager'? B");
}

TEST(MachineFile, ErrorsNameThePlaceAndTheRemedy) {
  EXPECT_EQ(smallError("[network]\nbytes_per_secnd = 1e9\n"),
            "small.toml:17: [network]: unknown key 'bytes_per_secnd'; did you "
            "mean 'bytes_per_second'?");
  EXPECT_EQ(smallError("[netwrk]\n"),
            "small.toml:16: a machine file: unknown key 'netwrk'; did you mean "
            "'network'?");
  EXPECT_EQ(smallError("[network]\nbytes_per_second = -1\n"),
            "small.toml:17: [network]: bytes_per_second: expected bytes per "
            "second, 1000 to 1e+18, not -1");
  EXPECT_EQ(smallError("[network]\nbytes_per_second = nan\n"),
            "small.toml:17: [network]: bytes_per_second: expected bytes per "
            "second, 1000 to 1e+18, not nan");
  EXPECT_EQ(smallError("[network]\nbytes_per_second = \"1e9\"\n"),
            "small.toml:17: [network]: bytes_per_second: expected bytes per "
            "second, 1000 to 1e+18, a number");
  EXPECT_EQ(smallError("[exact]\nround_bytes = 4096.5\n"),
            "small.toml:17: [exact]: round_bytes: expected a whole number, not "
            "4096.5");
  EXPECT_EQ(smallError("network = 1\n"),
            "small.toml:16: [memory]: unknown key 'network'");
  EXPECT_EQ(machineError("network = 1\nname = \"m\"\n"),
            "m.toml:1: [network]: expected a table");
  EXPECT_EQ(
      machineError("name = \"m\"\n[matmul]\nwave_filling = \"sqr\"\n"),
      "m.toml:3: [matmul]: wave_filling: expected none, sqrt, linear; did "
      "you mean 'sqrt'?");
  EXPECT_EQ(machineError("name = \"m\"\n"),
            "m.toml: [device] memory_bytes is missing: say bytes, or a base "
            "that has it (docs/machines.md)");
  EXPECT_EQ(machineError("[device]\n"),
            "m.toml:1: a machine file: name is missing: say what it is called");
  EXPECT_EQ(machineError("name = \"m\"\nbase = \"h10\"\n"),
            "m.toml:2: a machine file: base: 'h10' is not a machine that is "
            "built in; did you mean 'h100'?");
  EXPECT_EQ(machineError("name = \n").substr(0, 9), "m.toml:1:");
  EXPECT_EQ(machineError("name = \"a\\nb\"\n"),
            "m.toml:1: a machine file: name: expected one line of text");
}

TEST(MachineFile, ListsAreChecked) {
  const std::string head = "[[curve]]\ncollective = \"all_gather\"\n"
                           "ranks_per_node = 4\n";
  EXPECT_EQ(smallError(head),
            "small.toml:16: [[curve]]: say either points, [bytes, seconds], or "
            "protocols");
  EXPECT_EQ(smallError(head + "points = [[2, 1e-3], [1, 2e-3]]\n"),
            "small.toml:19: [[curve]]: points: 1 bytes come after 2; sort "
            "them, each size once");
  EXPECT_EQ(smallError(head + "points = [[2, 0]]\n"),
            "small.toml:19: [[curve]]: points: expected seconds, 1e-09 to "
            "1e+06, not 0");
  EXPECT_EQ(smallError(head + "points = [[2]]\n"),
            "small.toml:19: [[curve]]: points: expected [bytes, seconds]");
  EXPECT_EQ(smallError(head + "points = []\n"),
            "small.toml:19: [[curve]]: points: expected a list of 1 to 256 "
            "pairs");
  EXPECT_EQ(smallError(head + "nodes = 1048577\npoints = [[1, 1]]\n"),
            "small.toml:19: [[curve]]: nodes: expected a number of nodes, 1 to "
            "1048576, not 1048577");
  EXPECT_EQ(smallError(head + "sums = \"exact\"\npoints = [[1, 1]]\n"),
            "small.toml:19: [[curve]]: sums: an all_gather has none; remove "
            "it");
  EXPECT_EQ(smallError("[[curve]]\ncollective = \"all_gather\"\n"),
            "small.toml:16: [[curve]]: ranks_per_node is missing: say a number "
            "of ranks");
  EXPECT_EQ(
      smallError(head + "points = [[1, 1]]\n" + head + "points = [[1, 1]]\n"),
      "small.toml:20: [[curve]]: the curve of all_gather over 1 nodes of "
      "4 ranks is listed twice; remove one");
  EXPECT_EQ(smallError(head + "protocols = [{ name = \"a\", "
                              "bytes_per_second = 1e9, ramp = \"b\" }]\n"),
            "small.toml:19: [[curve]] protocols: ramp: there is no [[ramp]] "
            "'b'");
  EXPECT_EQ(smallError("[[ramp]]\nname = \"r\"\n"
                       "points = [[64, 0.1], [128, 0.3]]\n"),
            "small.toml:18: [[ramp]]: points: 128 bytes would be faster than "
            "64; a share grows no faster than the bytes");
  std::string many = "[[curve]]\ncollective = \"all_gather\"\n"
                     "ranks_per_node = 2\npoints = [[1, 1]]\nnodes = ";
  std::string text;
  for (int i = 1; i <= 513; ++i)
    text += many + std::to_string(i) + "\n";
  EXPECT_EQ(smallError(text),
            "small.toml:16: a machine file: curve: expected at most 512 "
            "tables, not 513");
}

/// All that calibration writes.
static const std::string kMeasured = R"([slowdown]
collective = 0.75
[[product]]
type = "f32"
layout = "nt"
rates = [[8, 16, 32, 1e9], [16, 16, 32, 2.5e9]]
[[product]]
type = "bf16"
layout = "tn"
rates = [[8, 16, 32, 1e9]]
[[attention_pass]]
type = "f32"
pass = "backward"
rates = [[256, 256, 64, 1e9]]
[[kernel]]
name = "cross_entropy"
points = [[4096, 1e-6], [8192, 2e-6]]
)";

TEST(MachineFile, WhatIsMeasuredReadsWhatItWrites) {
  Machine machine = smallWith(kMeasured);
  ASSERT_EQ(machine.products.size(), 2u);
  EXPECT_EQ(machine.products[0].layout, Layout::NT);
  EXPECT_EQ(machine.products[0].rates[1].sizes[0], 16);
  EXPECT_EQ(machine.products[1].type, MathType::BF16);
  ASSERT_EQ(machine.attentions.size(), 1u);
  EXPECT_EQ(machine.attentions[0].pass, AttentionPass::Backward);
  EXPECT_EQ(machine.kernels[0].points[1].second, 2e-6);
  EXPECT_EQ(machine.slowdown.collective, 0.75);
  std::string text = toToml(machine);
  Machine again = readMachine(text, "again.toml");
  EXPECT_EQ(toToml(again), text);
  // Each number counts.
  std::string fingerprint = fingerprintOf(machine);
  EXPECT_EQ(fingerprintOf(again), fingerprint);
  again.products[1].rates[0].flopsPerSecond *= 2;
  EXPECT_NE(fingerprintOf(again), fingerprint);
  again = machine;
  again.attentions[0].rates[0].sizes[2] = 65;
  EXPECT_NE(fingerprintOf(again), fingerprint);
  again = machine;
  again.kernels[0].points[0].second *= 2;
  EXPECT_NE(fingerprintOf(again), fingerprint);
}

TEST(MachineFile, WhatIsMeasuredIsChecked) {
  const std::string product = "[[product]]\ntype = \"f32\"\n";
  const std::string nt = product + "layout = \"nt\"\n";
  EXPECT_EQ(smallError(product),
            "small.toml:16: [[product]]: layout is missing: say nn, nt, tn, "
            "tt");
  EXPECT_EQ(smallError(product + "layout = \"tx\"\n"),
            "small.toml:18: [[product]]: layout: expected nn, nt, tn, tt; did "
            "you mean 'tn'?");
  EXPECT_EQ(smallError(nt),
            "small.toml:16: [[product]]: rates is missing: list what was "
            "measured");
  EXPECT_EQ(smallError(nt + "rates = [[8, 8, 1e9]]\n"),
            "small.toml:19: [[product]]: rates: expected three sizes and flop "
            "per second");
  EXPECT_EQ(smallError(nt + "rates = [[8, 8, 0, 1e9]]\n"),
            "small.toml:19: [[product]]: rates: expected a number of elements, "
            "1 to 1099511627776, not 0");
  EXPECT_EQ(smallError(nt + "rates = [[8, 8, 8, -1]]\n"),
            "small.toml:19: [[product]]: rates: expected flop per second, 1000 "
            "to 1e+20, not -1");
  EXPECT_EQ(smallError(nt + "rates = [[8, 8, 8, 1e9], [8, 8, 8, 2e9]]\n"),
            "small.toml:19: [[product]]: rates: these sizes are listed twice; "
            "remove one");
  EXPECT_EQ(smallError(nt + "rates = []\n"),
            "small.toml:19: [[product]]: rates: expected a list of 1 to 1024 "
            "rates");
  std::string good = nt + "rates = [[8, 8, 8, 1e9]]\n";
  EXPECT_EQ(smallError(good + good),
            "small.toml:20: [[product]]: the [[product]] of f32 nt is listed "
            "twice; remove one");
  EXPECT_EQ(smallError("[[attention_pass]]\ntype = \"bf16\"\npass = "
                       "\"back\"\n")
                .substr(0, 67),
            "small.toml:18: [[attention_pass]]: pass: expected forward, "
            "backward");
  EXPECT_EQ(smallError("[[kernel]]\npoints = [[1, 1]]\n"),
            "small.toml:16: [[kernel]]: name is missing: say what it is "
            "called");
  EXPECT_EQ(smallError("[[kernel]]\nname = \"copy\"\n"),
            "small.toml:16: [[kernel]]: points is missing: list [bytes, "
            "seconds]");
  EXPECT_EQ(smallError("[slowdown]\ncollective = -0.5\n"),
            "small.toml:17: [slowdown]: collective: expected a fraction, 0 to "
            "100, not -0.5");
}

TEST(MachineFile, ABaseIsReplacedKeyByKey) {
  Machine base = loadMachine("h100");
  Machine own = readMachine("name = \"own\"\nbase = \"h100\"\n"
                            "[memory]\nshare = 0.5\n"
                            "[[ring.protocol]]\nname = \"LL\"\nshare = 0.25\n"
                            "[[curve]]\ncollective = \"all_gather\"\n"
                            "ranks_per_node = 8\npoints = [[1, 1]]\n",
                            "own.toml");
  EXPECT_EQ(own.memory.share, 0.5);
  EXPECT_EQ(own.memory.bytesPerSecond, base.memory.bytesPerSecond);
  ASSERT_EQ(own.ring.protocols.size(), 3u);
  EXPECT_EQ(own.ring.protocols[0].share, 0.25);
  EXPECT_EQ(own.curves.size(), base.curves.size());
  EXPECT_EQ(own.curves[0].points.size(), 1u);
  EXPECT_EQ(own.description, "");
  // Another network: what was measured between nodes is not its.
  for (const Machine::Curve &curve : loadMachine("h100-1x200g").curves)
    EXPECT_EQ(curve.shape.nodes, 1);
}

TEST(MachineFile, AFingerprintIsOfAllNumbers) {
  Machine machine = loadMachine("h100");
  std::string fingerprint = fingerprintOf(machine);
  Machine renamed = machine;
  renamed.name = "other";
  renamed.description = "";
  EXPECT_EQ(fingerprintOf(renamed), fingerprint);
  size_t keys = keysOf(machine).size();
  for (size_t i = 0; i < keys; ++i) {
    Machine changed = machine;
    FileKey key = keysOf(changed)[i];
    if (auto **number = std::get_if<double *>(&key.place))
      **number += 0.5;
    else if (auto **count = std::get_if<int64_t *>(&key.place))
      **count += 1;
    else
      std::get<ChoicePlace>(key.place).set("none");
    EXPECT_NE(fingerprintOf(changed), fingerprint) << key.name;
  }
  machine.curves[0].points[3].second *= 1.0000001;
  EXPECT_NE(fingerprintOf(machine), fingerprint);
}

TEST(MachineFile, EveryKeyIsExplained) {
  std::string page = readWholeFile(
      std::string(FSDP_GOLDEN_DIR) + "/../../docs/machines.md", "the page");
  Machine machine;
  SoftwareProfile profile;
  Machine::Protocol protocol;
  Machine::Curve curve;
  Machine::Curve::Line line;
  Machine::Product product;
  Machine::AttentionRates attention;
  for (const std::vector<FileKey> &keys :
       {keysOf(machine), keysOf(profile), keysOf(machine.ring),
        keysOf(protocol), keysOf(curve), keysOf(line), keysOf(product),
        keysOf(attention)})
    for (const FileKey &key : keys) {
      std::string section = key.section;
      std::string name = section.empty() ? key.name : section + "." + key.name;
      EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
    }
  for (const std::string &name : builtInMachines())
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
  for (const std::string &name : builtInProfiles())
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
}
