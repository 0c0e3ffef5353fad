//===- ConfigParse.cpp - Reading runs and overrides -----------------------===//
//
// toml++ parses; the table decides what a key may hold. A value from a file
// keeps its TOML type, so "3" is not a number; a value from the command line
// is text.
//
//===----------------------------------------------------------------------===//
#include "KeyNames.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

using namespace fsdp;

//===----------------------------------------------------------------------===//
// Unknown names
//===----------------------------------------------------------------------===//

/// Whether only earlier versions of torchtitan have the key.
static bool isEarlier(const TorchtitanKey &key) { return key.standard.empty(); }

/// What the writer of an unknown `name` probably meant. The same key in
/// another section comes first, then a near key of this section, then a near
/// name anywhere.
static std::string suggestKey(const std::string &name,
                              const std::vector<ConfigOption> &options) {
  std::vector<std::string> all, sameSection;
  for (const ConfigOption &option : options)
    all.push_back(option.name);
  std::vector<std::string> known = all;
  for (const TorchtitanKey &key : torchtitanKeys())
    if (key.fate != TorchtitanKey::Refused && !isEarlier(key))
      known.push_back(key.name);
  for (const std::string &other : known) {
    if (keyOf(other) == keyOf(name))
      return other;
    if (sectionOf(other) == sectionOf(name))
      sameSection.push_back(keyOf(other));
  }
  std::string key = nearestName(keyOf(name), sameSection);
  return key.empty() ? nearestName(name, all) : sectionOf(name) + "." + key;
}

/// Those of the keys that are called `key` in their sections, as options.
static std::string optionsOf(const std::string &key,
                             const std::vector<std::string> &keys) {
  std::vector<std::string> found;
  for (const std::string &name : keys)
    if (keyOf(name) == key)
      found.push_back("--" + name);
  return joinedText(found, "' or '");
}

std::string fsdp::suggestOption(const std::string &option,
                                const std::vector<std::string> &options) {
  std::string name = withoutDashes(option), key = name;
  std::replace(key.begin(), key.end(), '-', '_');
  RunConfig config;
  std::vector<std::string> ours, theirs, candidates = options;
  for (const ConfigOption &known : configOptions(config)) {
    ours.push_back(known.name);
    candidates.push_back(keyOf(known.name));
  }
  for (const TorchtitanKey &known : torchtitanKeys())
    if (known.fate != TorchtitanKey::Refused && !isEarlier(known))
      theirs.push_back(known.name);
  if (std::string names = optionsOf(key, ours); !names.empty())
    return didYouMean(names);
  if (std::string names = optionsOf(key, theirs); !names.empty())
    return didYouMean(names);
  std::string nearest = nearestOption(name, candidates);
  bool isOption = std::count(options.begin(), options.end(), nearest) > 0;
  return didYouMean(isOption ? "--" + nearest : optionsOf(nearest, ours));
}

static ConfigOption findOption(RunConfig &config, const std::string &name,
                               const std::string &origin) {
  std::vector<ConfigOption> options = configOptions(config);
  for (const ConfigOption &option : options)
    if (option.name == name)
      return option;
  throw Error(origin + ": unknown key '" + name + "'" +
              didYouMean(suggestKey(name, options)));
}

/// A key of torchtitan that is none of ours.
static const TorchtitanKey *findForeign(const std::string &name) {
  const TorchtitanKey *key = findTorchtitanKey(name);
  return key && key->fate != TorchtitanKey::Works ? key : nullptr;
}

/// Whether a known key begins with `prefix`.
static bool beginsAKey(RunConfig &config, const std::string &prefix) {
  for (const ConfigOption &option : configOptions(config))
    if (option.name.rfind(prefix, 0) == 0)
      return true;
  for (const TorchtitanKey &key : torchtitanKeys())
    if (key.name.rfind(prefix, 0) == 0)
      return true;
  return false;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

void ConfigErrors::add(const std::string &message, const std::string &key) {
  messages.push_back(message);
  keys.push_back(key);
}

bool ConfigErrors::concern(const std::string &prefix) const {
  for (const std::string &key : keys)
    if (key.rfind(prefix, 0) == 0)
      return true;
  return false;
}

void ConfigErrors::throwIfAny() const {
  if (messages.empty())
    return;
  if (messages.size() == 1)
    throw Error(messages.front());
  std::string text = std::to_string(messages.size()) + " settings are wrong:";
  for (const std::string &message : messages)
    text += "\n  " + message;
  throw Error(text);
}

/// Runs `read`, which handles `key`, and keeps what it throws.
template <typename Read>
static void collect(ConfigErrors &errors, const std::string &key, Read read) {
  try {
    read();
  } catch (const Error &error) {
    errors.add(error.what(), key);
  }
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

namespace {

/// A value as it was written.
using Value =
    std::variant<bool, int64_t, double, std::string, std::vector<std::string>>;

/// Stores a value in a place of the right type; false if it has another.
struct Store {
  const Value &value;

  bool operator()(bool *place) { return take(*place); }
  bool operator()(int64_t *place) { return take(*place); }
  bool operator()(std::string *place) { return take(*place); }
  bool operator()(std::vector<std::string> *place) { return take(*place); }
  bool operator()(const ChoicePlace &place) {
    const auto *text = std::get_if<std::string>(&value);
    return text && place.set(*text);
  }
  bool operator()(const ChoiceListPlace &place) {
    const auto *texts = std::get_if<std::vector<std::string>>(&value);
    return texts && place.set(*texts);
  }
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
  if (const auto *held = std::get_if<std::vector<std::string>>(&value))
    return "[" + printableLine(joinedText(*held, ", ")) + "]";
  return "'" + printableLine(std::get<std::string>(value)) + "'";
}

/// What the table says a value must be, for messages.
static std::string expectation(const ConfigOption &option) {
  if (option.typeName() == "list")
    return "a list of " + (option.choices.empty()
                               ? "strings"
                               : joinedText(option.choices, ", "));
  if (!option.choices.empty())
    return "one of " + joinedText(option.choices, ", ");
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
  if (!std::isfinite(number))
    throw Error(origin + ": " + option.name + ": expected a finite number, " +
                "got " + quoted(value));
  if (number < option.min)
    throw Error(origin + ": " + option.name + ": expected at least " +
                boundText(option.min) + ", got " + quoted(value));
  if (option.isBelowMax && number >= option.max)
    throw Error(origin + ": " + option.name + ": expected less than " +
                boundText(option.max) + ", got " + quoted(value));
  if (number > option.max)
    throw Error(origin + ": " + option.name + ": expected at most " +
                boundText(option.max) + ", got " + quoted(value));
}

static void checkLine(const ConfigOption &option, const Value &value,
                      const std::string &origin) {
  const auto *text = std::get_if<std::string>(&value);
  if (option.isLine && text && !isPlainLine(*text))
    throw Error(origin + ": " + option.name +
                ": expected one line of UTF-8 without control characters");
}

static bool isListed(const ConfigOption &option, const Value &value) {
  auto isChoice = [&](const std::string &text) {
    return std::find(option.choices.begin(), option.choices.end(), text) !=
           option.choices.end();
  };
  // An enumeration also reads names of the past.
  if (option.choices.empty() ||
      std::holds_alternative<ChoicePlace>(option.place))
    return true;
  if (const auto *list = std::get_if<std::vector<std::string>>(&value))
    return std::all_of(list->begin(), list->end(), isChoice);
  const auto *string = std::get_if<std::string>(&value);
  return string && isChoice(*string);
}

/// What to use for values of torchtitan's that the option does not take.
static std::string remedyOf(const ConfigOption &option) {
  const TorchtitanKey *key = findTorchtitanKey(option.name);
  return key && !key->instead.empty() ? "; use " + key->instead : "";
}

static const char *const commandLine = "command line";

[[noreturn]] static void refuseContradiction(const ConfigOption &option,
                                             const std::string &before,
                                             const std::string &origin,
                                             const std::string &where) {
  throw Error(origin + ": " + option.name + ": '" +
              printableLine(option.text()) + "' contradicts '" +
              printableLine(before) + "' " + where + "; leave one of them out");
}

/// A file says a key once, but may say it by a key of torchtitan's too.
static void checkAgreement(const RunConfig &config, const ConfigOption &option,
                           const std::string &before,
                           const std::string &origin) {
  auto first = config.origin.find(option.name);
  bool isSaidTwice = first != config.origin.end() &&
                     first->second != commandLine && origin != commandLine;
  if (isSaidTwice && option.text() != before)
    refuseContradiction(option, before, origin, "at " + first->second);
}

static void storeValue(const ConfigOption &option, const Value &value,
                       const std::string &origin) {
  checkBounds(option, value, origin);
  checkLine(option, value, origin);
  if (!isListed(option, value) || !std::visit(Store{value}, option.place))
    throw Error(origin + ": " + option.name + ": expected " +
                expectation(option) + ", got " + quoted(value) +
                remedyOf(option));
}

static void setValue(RunConfig &config, const ConfigOption &option,
                     const Value &value, const std::string &origin) {
  std::string before = option.text();
  storeValue(option, value, origin);
  checkAgreement(config, option, before, origin);
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

/// The texts between commas.
static std::vector<std::string> splitList(const std::string &text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');)
    parts.push_back(part);
  return parts;
}

/// Text as a value of the type the option wants; text of another type stays
/// a string, which setValue refuses.
static Value valueOfText(const ConfigOption &option, const std::string &text) {
  std::string type = option.typeName();
  if (type == "boolean" && (text == "true" || text == "false"))
    return text == "true";
  if (type == "list")
    return splitList(text);
  if (type == "integer")
    if (auto value = parseNumber<int64_t>(text))
      return *value;
  if (type == "number")
    if (auto value = parseNumber<double>(text))
      return *value;
  return text;
}

/// Whether a key of torchtitan that is none of ours may have a value. A string
/// from the command line comes without the quotes of the table.
static bool passes(const TorchtitanKey &key, const std::string &literal) {
  auto isSame = [&](const std::string &value) {
    return literal == value || '"' + literal + '"' == value;
  };
  return key.fate == TorchtitanKey::Any ||
         std::any_of(key.values.begin(), key.values.end(), isSame);
}

/// A string of the table or of a file as on the command line.
static std::string withoutQuotes(const std::string &literal) {
  bool isQuoted = literal.size() > 1 && literal.front() == '"';
  return isQuoted ? literal.substr(1, literal.size() - 2) : literal;
}

/// Refuses a value that is not so here, at once or if the key's feature is on.
/// One that passes may be that of a key of ours too.
static void checkForeign(RunConfig &config, const TorchtitanKey &key,
                         const std::string &literal,
                         const std::string &origin) {
  config.wrongWithFeature.erase(key.name);
  if (passes(key, literal)) {
    if (!key.sets.empty())
      setConfigOption(config, key.sets, withoutQuotes(literal), origin);
    return;
  }
  std::string message = origin + ": " + key.name + " = " +
                        printableLine(literal) + " is not supported (" +
                        key.meaning + "); ";
  if (!key.instead.empty())
    message += "use " + key.instead + ", and ";
  message += "leave the key out";
  if (!key.values.empty())
    message += " or set it to " + joinedText(key.values, " or ");
  if (key.feature.empty())
    throw Error(message);
  config.wrongWithFeature[key.name] = message;
}

void fsdp::setOption(const ConfigOption &option, const std::string &text,
                     const std::string &origin) {
  storeValue(option, valueOfText(option, text), origin);
}

void fsdp::setConfigOption(RunConfig &config, const std::string &name,
                           const std::string &text, const std::string &origin) {
  ConfigOption option = findOption(config, name, origin);
  setValue(config, option, valueOfText(option, text), origin);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

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
  if (const auto *array = node.as_array();
      array && array->is_homogeneous(toml::node_type::string)) {
    std::vector<std::string> list;
    for (const toml::node &element : *array)
      list.push_back(element.as_string()->get());
    return list;
  }
  if (const auto *array = node.as_array(); array && array->empty())
    return std::vector<std::string>();
  std::ostringstream type;
  type << node.type();
  throw Error(origin + ": " + name + ": expected " + expectation(option) +
              ", got a value of type " + type.str());
}

/// A value as TOML spells it, to compare with those of the table.
static std::string literalOf(const toml::node &node) {
  std::ostringstream out;
  if (const auto *array = node.as_array()) {
    for (const toml::node &element : *array)
      out << (out.tellp() == 0 ? "" : ", ") << literalOf(element);
    return "[" + out.str() + "]";
  }
  if (const auto *value = node.as_string())
    out << '"' << value->get() << '"';
  else if (const auto *value = node.as_boolean())
    out << (value->get() ? "true" : "false");
  else if (const auto *value = node.as_integer())
    out << value->get();
  else if (const auto *value = node.as_floating_point())
    out << value->get();
  else
    out << "a " << node.type();
  return out.str();
}

static void setNode(RunConfig &config, const std::string &name,
                    const toml::node &node, const std::string &origin) {
  if (const TorchtitanKey *key = findForeign(name))
    return checkForeign(config, *key, literalOf(node), origin);
  ConfigOption option = findOption(config, name, origin);
  setValue(config, option, valueOfNode(node, name, option, origin), origin);
}

/// `section` may be nested: "quantize.linear.float8".
static void loadSection(RunConfig &config, const std::string &section,
                        const toml::table &table, const std::string &path,
                        ConfigErrors &errors) {
  for (const auto &[key, node] : inOrder(table)) {
    std::string name = section + "." + key, origin = originOf(*node, path);
    if (node->is_table() && beginsAKey(config, name + "."))
      loadSection(config, name, *node->as_table(), path, errors);
    else
      collect(errors, name,
              [&, &node = node] { setNode(config, name, *node, origin); });
  }
}

/// Refuses what stands at the top level and is no known section.
static void checkSection(RunConfig &config, const std::string &section,
                         const toml::node &node, const std::string &origin) {
  if (!node.is_table())
    throw Error(origin + ": '" + section +
                "' stands outside a section; keys belong under [section]");
  if (beginsAKey(config, section + "."))
    return;
  std::vector<std::string> sections;
  for (const ConfigOption &option : configOptions(config))
    sections.push_back(sectionOf(option.name));
  for (const TorchtitanKey &key : torchtitanKeys())
    if (!isEarlier(key))
      sections.push_back(sectionOf(key.name));
  throw Error(origin + ": unknown section [" + section + "]" +
              didYouMean(section, sections));
}

void fsdp::loadConfig(RunConfig &config, const std::string &path,
                      ConfigErrors &errors) {
  toml::table table;
  collect(errors, "", [&] { table = parseToml(path, "the run description"); });
  for (const auto &[section, node] : inOrder(table))
    collect(errors, section, [&, &section = section, &node = node] {
      checkSection(config, section, *node, originOf(*node, path));
      loadSection(config, section, *node->as_table(), path, errors);
    });
}

void fsdp::loadConfig(RunConfig &config, const std::string &path) {
  ConfigErrors errors;
  loadConfig(config, path, errors);
  errors.throwIfAny();
}

//===----------------------------------------------------------------------===//
// Command line
//===----------------------------------------------------------------------===//

/// Whether an argument is `--section.key…` rather than a tool's own option.
static bool isOverride(const std::string &argument) {
  std::string name = argument.substr(0, argument.find('='));
  return argument.rfind("--", 0) == 0 && name.find('.') != std::string::npos;
}

using KeysBySetting = std::map<std::string, std::string>;

/// `saidBy`: of each key of ours that a command line has set so far, the key by
/// which it did. The same one again counts anew, which scripts rely on;
/// another that says otherwise contradicts.
static void setOverride(RunConfig &config, KeysBySetting &saidBy,
                        const std::string &name,
                        const std::optional<std::string> &value) {
  const std::string origin = commandLine;
  const TorchtitanKey *foreign = findForeign(name);
  // The key is looked up before its value, so that a misspelt last key is
  // reported as unknown rather than as without a value.
  if (!foreign)
    findOption(config, name, origin);
  if (!value)
    throw Error(origin + ": --" + name + " needs a value");
  if (foreign && (foreign->sets.empty() || !passes(*foreign, *value)))
    return checkForeign(config, *foreign, *value, origin);
  ConfigOption option =
      findOption(config, foreign ? foreign->sets : name, origin);
  std::string before = option.text();
  if (foreign)
    checkForeign(config, *foreign, *value, origin);
  else
    setConfigOption(config, name, *value, origin);
  auto [said, isFirst] = saidBy.emplace(option.name, name);
  if (!isFirst && said->second != name && option.text() != before)
    refuseContradiction(option, before, origin, "of --" + said->second);
  said->second = name;
}

std::vector<std::string>
fsdp::applyConfigOverrides(RunConfig &config,
                           const std::vector<std::string> &args,
                           ConfigErrors &errors) {
  std::vector<std::string> others;
  KeysBySetting saidBy;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!isOverride(args[i])) {
      others.push_back(args[i]);
      continue;
    }
    size_t equal = args[i].find('=');
    std::string name = args[i].substr(2, equal - 2);
    std::optional<std::string> value;
    if (equal != std::string::npos)
      value = args[i].substr(equal + 1);
    else if (i + 1 < args.size())
      value = args[++i];
    collect(errors, name, [&] { setOverride(config, saidBy, name, value); });
  }
  return others;
}

std::vector<std::string>
fsdp::applyConfigOverrides(RunConfig &config,
                           const std::vector<std::string> &args) {
  ConfigErrors errors;
  std::vector<std::string> others = applyConfigOverrides(config, args, errors);
  errors.throwIfAny();
  return others;
}
