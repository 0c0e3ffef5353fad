//===- ConfigReference.cpp - What keys there are, for people --------------===//
//
// The tables of keys as the text of --help and as Markdown.
//
//===----------------------------------------------------------------------===//
#include "KeyNames.h"
#include "fsdp/Config/RunConfig.h"
#include "fsdp/Support/Markdown.h"
#include "fsdp/Support/Text.h"

using namespace fsdp;
using markdown::code;
using markdown::head;
using markdown::row;

/// What a value may be: "integer", or the choices.
static std::string kindOf(const ConfigOption &option) {
  return option.choices.empty() ? option.typeName()
                                : joinedText(option.choices, "|");
}

//===----------------------------------------------------------------------===//
// Help
//===----------------------------------------------------------------------===//

/// torchtitan's keys whose features are not here, one line each.
static std::string torchtitanHelp() {
  std::string help = "\n"
                     "Keys of torchtitan that are accepted with only these "
                     "values, which describe what is done\n"
                     "anyway (fsdp-run --config-reference lists all keys, also "
                     "those that take any value):\n";
  for (const TorchtitanKey &key : torchtitanKeys())
    if (!key.values.empty())
      help += "  " + key.name + " = " + joinedText(key.values, " or ") + ": " +
              key.meaning + "\n";
  return help;
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
    help += "  --" + option.name + " <" + kindOf(option) + ">" +
            (value.empty() ? "" : " (" + value + ")") +
            (option.isCompiled() ? " *" : "") + "\n      " + option.doc + "\n";
  }
  return help +
         "\n"
         "Keys with * decide what is compiled: a run refuses an artifact that "
         "was compiled with another\n"
         "value. Files that they name are compared by what is read from them, "
         "not by their paths.\n" +
         torchtitanHelp();
}

//===----------------------------------------------------------------------===//
// Markdown
//===----------------------------------------------------------------------===//

/// A default as TOML spells it.
static std::string defaultOf(const ConfigOption &option) {
  std::string type = option.typeName(), text = option.text();
  if (text == "unset")
    return text;
  return code(type == "string" ? '"' + text + '"'
              : type == "list" ? "[" + text + "]"
                               : text);
}

static std::string ourKeys() {
  RunConfig config;
  std::string text, section;
  for (const ConfigOption &option : configOptions(config)) {
    if (sectionOf(option.name) != section) {
      section = sectionOf(option.name);
      text += "\n### [" + section + "]\n" +
              head({"key", "value", "default", "meaning"});
    }
    text += row({code(keyOf(option.name)) + (option.isCompiled() ? " *" : ""),
                 kindOf(option), defaultOf(option), option.doc});
  }
  return text;
}

/// Options of a pipeline that are no keys.
static std::string pipelineAlone() {
  CompileOptions options;
  std::string text = head({"option", "value", "default", "meaning"});
  for (const ConfigOption &option : pipelineOptions(options))
    if (option.decides == Decides::PassesAlone)
      text += row({code(option.name) + " †", kindOf(option), defaultOf(option),
                   option.doc});
  return text;
}

/// What to use, after `before`, or nothing.
static std::string remedyOf(const TorchtitanKey &key, const char *before) {
  return key.instead.empty() ? "" : before + key.instead;
}

/// What becomes of a key of torchtitan that is one of ours.
static std::string workingKey(const TorchtitanKey &key) {
  RunConfig config;
  std::string text = "works";
  for (const ConfigOption &option : configOptions(config))
    if (option.name == key.name)
      text += ", default " + defaultOf(option);
  return text + (key.meaning.empty() ? "" : ": " + key.meaning) +
         remedyOf(key, "; otherwise use ");
}

/// What becomes of one that takes some values.
static std::string limitedKey(const TorchtitanKey &key) {
  std::vector<std::string> passing;
  for (const std::string &value : key.values)
    passing.push_back(code(value));
  if (!key.feature.empty())
    passing.push_back("any value with " + code(key.feature + " = false"));
  return "takes " + joinedText(passing, " or ") + ": " + key.meaning +
         remedyOf(key, "; otherwise use ");
}

static std::string fateOf(const TorchtitanKey &key) {
  switch (key.fate) {
  case TorchtitanKey::Works:
    return workingKey(key);
  case TorchtitanKey::Any:
    return "takes any value: " + key.meaning;
  case TorchtitanKey::Only:
    return limitedKey(key);
  case TorchtitanKey::Refused:
    return "refused: " + key.meaning + remedyOf(key, "; use ");
  }
  return "";
}

static std::string theirKeys() {
  std::string text, section;
  for (const TorchtitanKey &key : torchtitanKeys()) {
    if (sectionOf(key.name) != section) {
      section = sectionOf(key.name);
      text += "\n### torchtitan's [" + section + "]\n" +
              head({"key", "default there", "here"});
    }
    bool isCode = !key.standard.empty() && key.standard != "unset";
    text += row({code(keyOf(key.name)),
                 isCode                 ? code(key.standard)
                 : key.standard.empty() ? "earlier versions"
                                        : key.standard,
                 fateOf(key)});
  }
  return text;
}

std::string fsdp::configReference() {
  std::string text =
      "<!-- Made by `fsdp-run --config-reference`. -->\n\n"
      "# Keys of a run\n\n"
      "A TOML file with torchtitan's sections and keys describes a run; "
      "`--section.key value` sets a key on the command line of `fsdp-compile` "
      "and `fsdp-run`. Keys with * decide what is compiled: a run refuses an "
      "artifact that was compiled with another value. Files that they name are "
      "compared by what is read from them, not by their paths: a placement "
      "policy by its rules, a config.json by the fields of the model. If such "
      "a file does not exist, the run warns and takes the values that the "
      "artifact was compiled with.\n\n"
      "## Our keys\n" +
      ourKeys() +
      "\n"
      "## Options of a pipeline alone\n\n"
      "`fsdp-opt --fsdp-train` takes the keys that passes read, by their "
      "names, and the options with †. The latter are no keys of a run: "
      "`fsdp-compile` derives them from several keys and from its command "
      "line, or single passes have them.\n" +
      pipelineAlone() +
      "\n"
      "## Keys of torchtitan\n\n"
      "These tables list every key that the last torchtitan with TOML files "
      "has (February 2026), and names that earlier versions had. A value that "
      "a key does not take is an error that says what to use instead, or to "
      "leave the key out. All problems of the settings are reported together, "
      "before the directory of the model is read.\n" +
      theirKeys();
  text.pop_back(); // whoever prints it ends the line
  return text;
}
