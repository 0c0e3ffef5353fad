//===- ConfigParse.cpp - Reading runs and overrides -----------------------===//
//
// toml++ parses; the table decides what a key may hold. A value from a file
// keeps its TOML type, so "3" is not a number; a value from the command line
// is text.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Config/RunConfig.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>

namespace {
/// toml++ asserts some things that a malformed file can violate.
struct TomlAssertion {};
} // namespace

#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(condition) ((condition) ? void() : throw TomlAssertion())
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate" // not in the parser
#include <toml++/toml.h>
#pragma GCC diagnostic pop

using namespace fsdp;

//===----------------------------------------------------------------------===//
// Unknown names
//===----------------------------------------------------------------------===//

/// Levenshtein distance: insertions, deletions and substitutions cost 1.
static size_t editDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

std::string fsdp::nearestName(const std::string &name,
                              const std::vector<std::string> &candidates) {
  std::string nearest;
  size_t limit = std::max<size_t>(2, name.size() / 3) + 1;
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(name, candidate);
    if (distance < limit) {
      limit = distance;
      nearest = candidate;
    }
  }
  return nearest;
}

static std::string sectionOf(const std::string &name) {
  return name.substr(0, name.find('.'));
}
static std::string keyOf(const std::string &name) {
  return name.substr(name.find('.') + 1);
}

/// What the writer of an unknown `name` probably meant. The same key in
/// another section comes first, then a near key of this section, then a near
/// name anywhere.
static std::string suggestOption(const std::string &name,
                                 const std::vector<ConfigOption> &options) {
  std::vector<std::string> all, sameSection;
  for (const ConfigOption &option : options) {
    if (keyOf(option.name) == keyOf(name))
      return option.name;
    all.push_back(option.name);
    if (sectionOf(option.name) == sectionOf(name))
      sameSection.push_back(keyOf(option.name));
  }
  std::string key = nearestName(keyOf(name), sameSection);
  return key.empty() ? nearestName(name, all) : sectionOf(name) + "." + key;
}

static ConfigOption findOption(RunConfig &config, const std::string &name,
                               const std::string &origin) {
  std::vector<ConfigOption> options = configOptions(config);
  for (const ConfigOption &option : options)
    if (option.name == name)
      return option;
  std::string message = origin + ": unknown key '" + name + "'";
  std::string suggestion = suggestOption(name, options);
  if (!suggestion.empty())
    message += "; did you mean '" + suggestion + "'?";
  throw Error(message);
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// A value as it was written.
using Value = std::variant<bool, int64_t, double, std::string>;

/// Stores a value in a place of the right type; false if it has another.
struct Store {
  const Value &value;

  bool operator()(bool *place) { return take(*place); }
  bool operator()(int64_t *place) { return take(*place); }
  bool operator()(std::string *place) { return take(*place); }
  bool operator()(double *place) {
    if (const auto *integer = std::get_if<int64_t>(&value)) {
      *place = static_cast<double>(*integer);
      return true;
    }
    return take(*place);
  }
  template <typename T> bool operator()(std::optional<T> *place) {
    T inner{};
    if (!(*this)(&inner))
      return false;
    *place = inner;
    return true;
  }

private:
  template <typename T> bool take(T &place) {
    const T *held = std::get_if<T>(&value);
    if (held)
      place = *held;
    return held != nullptr;
  }
};

} // namespace

static std::string quoted(const Value &value) {
  if (const auto *held = std::get_if<bool>(&value))
    return *held ? "true" : "false";
  if (const auto *held = std::get_if<int64_t>(&value))
    return std::to_string(*held);
  if (const auto *held = std::get_if<double>(&value)) {
    std::ostringstream out;
    out << *held;
    return out.str();
  }
  return "'" + std::get<std::string>(value) + "'";
}

static std::string joined(const std::vector<std::string> &parts,
                          const char *separator) {
  std::string text;
  for (const std::string &part : parts)
    text += (text.empty() ? "" : separator) + part;
  return text;
}

/// What the table says a value must be, for messages.
static std::string expectation(const ConfigOption &option) {
  if (!option.choices.empty())
    return "one of " + joined(option.choices, ", ");
  return (option.typeName() == "integer" ? "an " : "a ") + option.typeName();
}

static std::string boundText(double bound) {
  std::ostringstream out;
  out.precision(15);
  out << bound;
  return out.str();
}

static void checkBounds(const ConfigOption &option, const Value &value,
                        const std::string &origin) {
  double number;
  if (const auto *integer = std::get_if<int64_t>(&value))
    number = static_cast<double>(*integer);
  else if (const auto *real = std::get_if<double>(&value))
    number = *real;
  else
    return;
  if (!std::isfinite(number) || number < option.min)
    throw Error(origin + ": " + option.name + ": expected at least " +
                boundText(option.min) + ", got " + quoted(value));
  if (number > option.max)
    throw Error(origin + ": " + option.name + ": expected at most " +
                boundText(option.max) + ", got " + quoted(value));
}

static void setValue(RunConfig &config, const ConfigOption &option,
                     const Value &value, const std::string &origin) {
  bool listed = option.choices.empty();
  if (const auto *string = std::get_if<std::string>(&value))
    listed |= std::find(option.choices.begin(), option.choices.end(),
                        *string) != option.choices.end();
  checkBounds(option, value, origin);
  if (!listed || !std::visit(Store{value}, option.place))
    throw Error(origin + ": " + option.name + ": expected " +
                expectation(option) + ", got " + quoted(value));
  config.origin[option.name] = origin;
}

/// Reads all of `text` as a T.
template <typename T>
static std::optional<T> parseNumber(const std::string &text) {
  T value{};
  const char *end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end)
    return std::nullopt;
  return value;
}

/// Text as a value of the type the option wants; text of another type stays
/// a string, which setValue refuses.
static Value valueOfText(const ConfigOption &option, const std::string &text) {
  std::string type = option.typeName();
  if (type == "boolean" && (text == "true" || text == "false"))
    return text == "true";
  if (type == "integer")
    if (auto value = parseNumber<int64_t>(text))
      return *value;
  if (type == "number")
    if (auto value = parseNumber<double>(text))
      return *value;
  return text;
}

void fsdp::setConfigOption(RunConfig &config, const std::string &name,
                           const std::string &text, const std::string &origin) {
  ConfigOption option = findOption(config, name, origin);
  setValue(config, option, valueOfText(option, text), origin);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static std::string readText(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file)
    throw Error("cannot read the run description '" + path + "'");
  return text;
}

static Value valueOfNode(const toml::node &node, const std::string &name,
                         const ConfigOption &option,
                         const std::string &origin) {
  if (const auto *value = node.as_boolean())
    return value->get();
  if (const auto *value = node.as_integer())
    return value->get();
  if (const auto *value = node.as_floating_point())
    return value->get();
  if (const auto *value = node.as_string())
    return value->get();
  std::ostringstream type;
  type << node.type();
  throw Error(origin + ": " + name + ": expected " + expectation(option) +
              ", got a value of type " + type.str());
}

static void loadSection(RunConfig &config, const std::string &section,
                        const toml::table &table, const std::string &path) {
  for (auto &&[key, node] : table) {
    std::string origin = path + ":" + std::to_string(node.source().begin.line);
    std::string name = section + "." + std::string(key.str());
    ConfigOption option = findOption(config, name, origin);
    setValue(config, option, valueOfNode(node, name, option, origin), origin);
  }
}

/// Refuses what stands at the top level and is no known section.
static const toml::table &checkSection(RunConfig &config,
                                       const std::string &section,
                                       const toml::node &node,
                                       const std::string &path) {
  std::string origin = path + ":" + std::to_string(node.source().begin.line);
  std::vector<std::string> sections;
  for (const ConfigOption &option : configOptions(config))
    sections.push_back(sectionOf(option.name));
  bool known =
      std::find(sections.begin(), sections.end(), section) != sections.end();
  if (known && node.is_table())
    return *node.as_table();
  if (!node.is_table())
    throw Error(origin + ": '" + section +
                "' stands outside a section; keys belong under [section]");
  std::string message = origin + ": unknown section [" + section + "]";
  std::string nearest = nearestName(section, sections);
  if (!nearest.empty())
    message += "; did you mean [" + nearest + "]?";
  throw Error(message);
}

void fsdp::loadConfig(RunConfig &config, const std::string &path) {
  toml::table table;
  try {
    table = toml::parse(readText(path), path);
  } catch (const toml::parse_error &error) {
    throw Error(path + ":" + std::to_string(error.source().begin.line) + ": " +
                std::string(error.description()));
  } catch (const TomlAssertion &) {
    throw Error(path + ": this is not valid TOML");
  }
  for (auto &&[name, node] : table) {
    std::string section(name.str());
    loadSection(config, section, checkSection(config, section, node, path),
                path);
  }
}

//===----------------------------------------------------------------------===//
// Command line
//===----------------------------------------------------------------------===//

/// Whether an argument is `--section.key…` rather than a tool's own option.
static bool isOverride(const std::string &argument) {
  std::string name = argument.substr(0, argument.find('='));
  return argument.rfind("--", 0) == 0 && name.find('.') != std::string::npos;
}

std::vector<std::string>
fsdp::applyConfigOverrides(RunConfig &config,
                           const std::vector<std::string> &args) {
  const std::string origin = "command line";
  std::vector<std::string> others;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!isOverride(args[i])) {
      others.push_back(args[i]);
      continue;
    }
    size_t equal = args[i].find('=');
    std::string name = args[i].substr(2, equal - 2);
    // The key is looked up before its value, so that a misspelt last key is
    // reported as unknown rather than as without a value.
    findOption(config, name, origin);
    if (equal != std::string::npos)
      setConfigOption(config, name, args[i].substr(equal + 1), origin);
    else if (i + 1 < args.size())
      setConfigOption(config, name, args[++i], origin);
    else
      throw Error(origin + ": --" + name + " needs a value");
  }
  return others;
}

std::string fsdp::configHelp() {
  RunConfig config;
  std::string help, section;
  for (const ConfigOption &option : configOptions(config)) {
    if (sectionOf(option.name) != section) {
      section = sectionOf(option.name);
      help += "\n[" + section + "]\n";
    }
    std::string value = option.text();
    help += "  --" + option.name + " <" +
            (option.choices.empty() ? option.typeName()
                                    : joined(option.choices, "|")) +
            ">" + (value.empty() ? "" : " (" + value + ")") +
            (option.compiled ? " *" : "") + "\n      " + option.doc + "\n";
  }
  return help + "\nKeys with * decide what is compiled: an artifact made with "
                "another value is refused.\n";
}
