//===- MachineFile.cpp - Reading and writing machine files ----------------===//
#include "FileKeys.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>

using namespace fsdp;

/// No machine needs more, and what is searched is short.
static constexpr size_t kMostTables = 512, kMostPoints = 256, kMostLines = 8,
                        kMostRates = 1024;

static constexpr KeyBounds kPointBytes = {1, 1LL << 56, "bytes"};
static constexpr KeyBounds kPointSeconds = {1e-9, 1e6, "seconds"};
static constexpr KeyBounds kPointShare = {1e-4, 1, "a share"};
static constexpr KeyBounds kRateSize = {1, 1LL << 40, "a number of elements"};
static constexpr KeyBounds kRateFlops = {1e3, 1e20, "flop per second"};

//===----------------------------------------------------------------------===//
// Lists
//===----------------------------------------------------------------------===//

/// Calls `read` with each table of a list of tables, if there is one.
template <typename Read>
static void readTables(TomlTable &table, const std::string &key, size_t most,
                       Read read) {
  const toml::node *node = table.find(key);
  if (!node)
    return;
  const toml::array *list = node->as_array();
  if (!list)
    table.fail(*node, key + ": expected a list of tables");
  if (list->size() > most)
    table.fail(*node, key + ": expected at most " + std::to_string(most) +
                          " tables, not " + std::to_string(list->size()));
  for (const toml::node &entry : *list)
    read(entry);
}

/// [[x, y], …] with x ascending.
static Machine::Points readPoints(const TomlTable &table,
                                  const toml::node &node,
                                  const KeyBounds &yBounds) {
  const toml::array *list = node.as_array();
  if (!list || list->empty() || list->size() > kMostPoints)
    table.fail(node, "points: expected a list of 1 to " +
                         std::to_string(kMostPoints) + " pairs");
  Machine::Points points;
  for (const toml::node &entry : *list) {
    const toml::array *pair = entry.as_array();
    if (!pair || pair->size() != 2)
      table.fail(entry, "points: expected [" + std::string(kPointBytes.unit) +
                            ", " + yBounds.unit + "]");
    double x = readNumber(table, (*pair)[0], "points", kPointBytes);
    double y = readNumber(table, (*pair)[1], "points", yBounds);
    if (!points.empty() && x <= points.back().first)
      table.fail(entry, "points: " + numberText(x) + " bytes come after " +
                            numberText(points.back().first) +
                            "; sort them, each size once");
    points.emplace_back(x, y);
  }
  return points;
}

/// [[size, size, size, flop/s], …], each sizes once.
static Machine::Rates readRates(const TomlTable &table,
                                const toml::node &node) {
  const toml::array *list = node.as_array();
  if (!list || list->empty() || list->size() > kMostRates)
    table.fail(node, "rates: expected a list of 1 to " +
                         std::to_string(kMostRates) + " rates");
  Machine::Rates rates;
  for (const toml::node &entry : *list) {
    const toml::array *row = entry.as_array();
    Machine::Rate rate;
    if (!row || row->size() != rate.sizes.size() + 1)
      table.fail(entry, "rates: expected three sizes and flop per second");
    for (size_t i = 0; i < rate.sizes.size(); ++i)
      rate.sizes[i] = readNumber(table, (*row)[i], "rates", kRateSize);
    rate.flopsPerSecond =
        readNumber(table, (*row)[rate.sizes.size()], "rates", kRateFlops);
    for (const Machine::Rate &other : rates)
      if (other.sizes == rate.sizes)
        table.fail(entry, "rates: these sizes are listed twice; remove one");
    rates.push_back(rate);
  }
  return rates;
}

/// Puts what a file says in the place of what its base said of the same.
template <typename T, typename Same>
static void putInPlace(std::vector<T> &list, T item, Same same) {
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const T &other) { return same(item, other); });
  if (found == list.end())
    list.push_back(std::move(item));
  else
    *found = std::move(item);
}

static constexpr auto haveSameName = [](const auto &a, const auto &b) {
  return a.name == b.name;
};

static std::string nameOf(const Machine::Product &product) {
  return spelled(product.type) + " " + spelled(product.layout);
}
static std::string nameOf(const Machine::AttentionRates &attention) {
  return spelled(attention.type) + " " + spelled(attention.pass);
}

/// "exact reduce_scatter over 2 nodes of 8 ranks"
static std::string nameOf(const Machine::Curve &curve) {
  std::string text = curve.collective == rt::CollectiveKind::AllGather
                         ? ""
                         : spelled(curve.sums) + " ";
  return text + spelled(curve.collective) + " over " +
         std::to_string(curve.shape.nodes) + " nodes of " +
         std::to_string(curve.shape.ranksPerNode) + " ranks";
}

/// Of what a table is.
static constexpr auto haveSameKeys = [](const auto &a, const auto &b) {
  return nameOf(a) == nameOf(b);
};

//===----------------------------------------------------------------------===//
// Tables
//===----------------------------------------------------------------------===//

namespace {

/// One file, put on top of what `machine` holds.
class Reader {
public:
  Reader(Machine &machine, const std::string &path)
      : machine(machine), path(path) {}

  void read(const toml::table &file);

private:
  void dropCurvesBetweenNodes();
  void readRing(const toml::node &node);
  void readRamp(const toml::node &node);
  /// Rates of a list, a table with keys that say what they are of.
  template <typename T>
  void readMeasured(const toml::node &node, const std::string &list,
                    std::vector<T> &all);
  void readKernel(const toml::node &node);
  void readCurve(const toml::node &node);
  Machine::Curve::Line readLine(const toml::node &node);
  /// Refuses what is twice in one file.
  void once(const TomlTable &table, const toml::node &node,
            const std::string &what);
  void checkRamp(const std::string &ramp, const std::string &origin) const;

  Machine &machine;
  const std::string &path;
  std::vector<std::string> seen;
  /// Ramps that are named before the file ends, and where.
  std::vector<std::pair<std::string, std::string>> ramps;
};

} // namespace

void Reader::once(const TomlTable &table, const toml::node &node,
                  const std::string &what) {
  if (std::find(seen.begin(), seen.end(), what) != seen.end())
    table.fail(node, what + " is listed twice; remove one");
  seen.push_back(what);
}

void Reader::dropCurvesBetweenNodes() {
  auto isBetweenNodes = [](const Machine::Curve &curve) {
    return curve.shape.nodes > 1;
  };
  machine.curves.erase(std::remove_if(machine.curves.begin(),
                                      machine.curves.end(), isBetweenNodes),
                       machine.curves.end());
}

void Reader::readRing(const toml::node &node) {
  TomlTable table(node, path, "[ring]");
  Machine::Ring &ring = machine.ring;
  readKeys(table, keysOf(ring), "ring");
  readText(table, "ramp", ring.ramp, kLongestName);
  if (!ring.ramp.empty())
    ramps.emplace_back(ring.ramp, table.origin() + ": [ring]");
  readTables(table, "protocol", kMostLines, [&](const toml::node &entry) {
    TomlTable row(entry, path, "[[ring.protocol]]");
    Machine::Protocol protocol;
    readName(row, entry, protocol.name);
    once(row, entry, "protocol '" + protocol.name + "'");
    readKeys(row, keysOf(protocol), "");
    row.finish();
    putInPlace(ring.protocols, protocol, haveSameName);
  });
  if (ring.protocols.size() > kMostLines)
    table.fail(node, "protocol: with those of its base there are more than " +
                         std::to_string(kMostLines));
  table.finish();
}

void Reader::readRamp(const toml::node &node) {
  TomlTable table(node, path, "[[ramp]]");
  Machine::Ramp ramp;
  readName(table, node, ramp.name);
  once(table, node, "ramp '" + ramp.name + "'");
  const toml::node *points = table.find("points");
  if (!points)
    table.fail(node, "points is missing: list [bytes of a rank, share]");
  ramp.points = readPoints(table, *points, kPointShare);
  for (size_t i = 1; i < ramp.points.size(); ++i) {
    auto [fewer, smaller] = ramp.points[i - 1];
    auto [more, larger] = ramp.points[i];
    if (larger / smaller > more / fewer)
      table.fail(*points, "points: " + numberText(more) +
                              " bytes would be faster than " +
                              numberText(fewer) +
                              "; a share grows no faster "
                              "than the bytes");
  }
  table.finish();
  putInPlace(machine.ramps, ramp, haveSameName);
}

template <typename T>
void Reader::readMeasured(const toml::node &node, const std::string &list,
                          std::vector<T> &all) {
  std::string what = "[[" + list + "]]";
  TomlTable table(node, path, what);
  T item;
  for (const FileKey &key : keysOf(item))
    if (!table.find(key.name))
      table.fail(node,
                 std::string(key.name) + " is missing: say " +
                     joinedText(std::get<ChoicePlace>(key.place).all(), ", "));
  readKeys(table, keysOf(item), "");
  once(table, node, "the " + what + " of " + nameOf(item));
  const toml::node *rates = table.find("rates");
  if (!rates)
    table.fail(node, "rates is missing: list what was measured");
  item.rates = readRates(table, *rates);
  table.finish();
  putInPlace(all, std::move(item), haveSameKeys);
}

void Reader::readKernel(const toml::node &node) {
  TomlTable table(node, path, "[[kernel]]");
  Machine::Kernel kernel;
  readName(table, node, kernel.name);
  once(table, node, "the kernel '" + kernel.name + "'");
  const toml::node *points = table.find("points");
  if (!points)
    table.fail(node, "points is missing: list [bytes, seconds]");
  kernel.points = readPoints(table, *points, kPointSeconds);
  table.finish();
  putInPlace(machine.kernels, kernel, haveSameName);
}

Machine::Curve::Line Reader::readLine(const toml::node &node) {
  TomlTable table(node, path, "[[curve]] protocols");
  Machine::Curve::Line line;
  readName(table, node, line.name);
  readKeys(table, keysOf(line), "");
  if (line.bytesPerSecond == 0)
    table.fail(node, "bytes_per_second is missing: say bytes per second");
  readText(table, "ramp", line.ramp, kLongestName);
  if (!line.ramp.empty())
    ramps.emplace_back(line.ramp, table.origin() + ": [[curve]] protocols");
  table.finish();
  return line;
}

void Reader::readCurve(const toml::node &node) {
  TomlTable table(node, path, "[[curve]]");
  Machine::Curve curve;
  if (!table.find("collective"))
    table.fail(node, "collective is missing: say " +
                         joinedText(allSpellings<rt::CollectiveKind>(), ", "));
  if (!table.find("ranks_per_node"))
    table.fail(node, "ranks_per_node is missing: say a number of ranks");
  readKeys(table, keysOf(curve), "");
  if (curve.collective == rt::CollectiveKind::AllGather &&
      curve.sums != Sums::Fast)
    table.fail(*table.find("sums"), "sums: an all_gather has none; remove it");
  if (curve.shape.ranks() < 2 || curve.shape.ranks() > kMaxRanks)
    table.fail(node, "a group has 2 to " + std::to_string(kMaxRanks) +
                         " ranks, not " + std::to_string(curve.shape.ranks()));
  once(table, node, "the curve of " + nameOf(curve));
  const toml::node *points = table.find("points");
  readTables(table, "protocols", kMostLines, [&](const toml::node &entry) {
    curve.lines.push_back(readLine(entry));
  });
  if ((points == nullptr) == curve.lines.empty())
    table.fail(node, "say either points, [bytes, seconds], or protocols");
  if (points)
    curve.points = readPoints(table, *points, kPointSeconds);
  table.finish();
  putInPlace(machine.curves, curve, haveSameKeys);
}

void Reader::checkRamp(const std::string &ramp,
                       const std::string &origin) const {
  std::vector<std::string> names;
  for (const Machine::Ramp &known : machine.ramps)
    names.push_back(known.name);
  if (std::find(names.begin(), names.end(), ramp) == names.end())
    throw Error(origin + ": ramp: there is no [[ramp]] '" + ramp + "'" +
                didYouMean(ramp, names));
}

void Reader::read(const toml::table &file) {
  TomlTable table(file, path, "a machine file");
  // A base has been read.
  table.find("base");
  machine.name.clear();
  machine.description.clear();
  readName(table, file, machine.name);
  readText(table, "description", machine.description, kLongestText);
  std::vector<std::string> sections =
      readSections(table, keysOf(machine), path);
  // What its base says of groups of several nodes is another network's.
  if (std::count(sections.begin(), sections.end(), "network") > 0)
    dropCurvesBetweenNodes();
  if (const toml::node *ring = table.find("ring"))
    readRing(*ring);
  readTables(table, "ramp", kMostTables,
             [&](const toml::node &node) { readRamp(node); });
  readTables(table, "product", kMostTables, [&](const toml::node &node) {
    readMeasured(node, "product", machine.products);
  });
  readTables(table, "attention_pass", kMostTables, [&](const toml::node &node) {
    readMeasured(node, "attention_pass", machine.attentions);
  });
  readTables(table, "kernel", kMostTables,
             [&](const toml::node &node) { readKernel(node); });
  readTables(table, "curve", kMostTables,
             [&](const toml::node &node) { readCurve(node); });
  table.finish();
  for (const auto &[ramp, origin] : ramps)
    checkRamp(ramp, origin);
  requireAll(keysOf(machine), path);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

Machine fsdp::readMachine(const std::string &text, const std::string &path) {
  toml::table file = parseTomlText(text, path);
  Machine machine;
  if (const toml::node *node = file.get("base")) {
    TomlTable table(file, path, "a machine file");
    std::string base;
    table.string("base", base);
    const char *found = findText(kMachineFiles, base);
    if (!found)
      table.fail(*node, "base: '" + printableLine(base) +
                            "' is not a machine that is built in" +
                            didYouMean(base, builtInMachines()));
    machine = readMachine(found, base + ".toml (built in)");
  }
  Reader(machine, path).read(file);
  return machine;
}

Machine fsdp::loadMachine(const std::string &nameOrPath) {
  auto [text, path] = textOf(nameOrPath, kMachineFiles, "the machine");
  return readMachine(text, path);
}

std::vector<std::string> fsdp::builtInMachines() {
  return namesOf(kMachineFiles);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static std::string written(const Machine::Points &points) {
  std::string text = "points = [\n";
  for (const auto &[x, y] : points)
    text += "  [" + numberText(x) + ", " + numberText(y) + "],\n";
  return text + "]\n";
}

static std::string written(const Machine::Rates &rates) {
  std::string text = "rates = [\n";
  for (const Machine::Rate &rate : rates) {
    text += "  [";
    for (double size : rate.sizes)
      text += numberText(size) + ", ";
    text += numberText(rate.flopsPerSecond) + "],\n";
  }
  return text + "]\n";
}

template <typename T>
static std::string written(const char *list, const std::vector<T> &given) {
  std::string text;
  for (T item : given)
    text += std::string("\n[[") + list + "]]\n" +
            writtenKeys(keysOf(item), "", "\n") + written(item.rates);
  return text;
}

static std::string written(const Machine::Ring &given) {
  Machine::Ring ring = given;
  std::string text = writtenKeys(keysOf(ring), "ring", "\n");
  if (!ring.ramp.empty())
    text += "ramp = " + quotedText(ring.ramp) + "\n";
  if (!text.empty() || !ring.protocols.empty())
    text = "\n[ring]\n" + text;
  for (Machine::Protocol &protocol : ring.protocols)
    text += "\n[[ring.protocol]]\nname = " + quotedText(protocol.name) + "\n" +
            writtenKeys(keysOf(protocol), "", "\n");
  return text;
}

static std::string written(const Machine::Curve &given) {
  Machine::Curve curve = given;
  std::string text = "\n[[curve]]\n" + writtenKeys(keysOf(curve), "", "\n");
  if (curve.lines.empty())
    return text + written(curve.points);
  text += "protocols = [\n";
  for (Machine::Curve::Line &line : curve.lines) {
    text += "  { name = " + quotedText(line.name) + ", ";
    text += writtenKeys(keysOf(line), "", ", ");
    if (line.ramp.empty())
      text.resize(text.size() - 2);
    else
      text += "ramp = " + quotedText(line.ramp);
    text += " },\n";
  }
  return text + "]\n";
}

/// All but the name and the description.
static std::string writtenFacts(const Machine &given) {
  Machine machine = given;
  std::string text = writtenSections(keysOf(machine));
  text += written(machine.ring);
  for (const Machine::Ramp &ramp : machine.ramps)
    text += "\n[[ramp]]\nname = " + quotedText(ramp.name) + "\n" +
            written(ramp.points);
  text += written("product", machine.products);
  text += written("attention_pass", machine.attentions);
  for (const Machine::Kernel &kernel : machine.kernels)
    text += "\n[[kernel]]\nname = " + quotedText(kernel.name) + "\n" +
            written(kernel.points);
  for (const Machine::Curve &curve : machine.curves)
    text += written(curve);
  return text;
}

std::string fsdp::toToml(const Machine &machine) {
  return writtenNames(machine.name, machine.description) +
         writtenFacts(machine);
}

std::string fsdp::fingerprintOf(const Machine &machine) {
  return checksumText(checksumOf(writtenFacts(machine)));
}
