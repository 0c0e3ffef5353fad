//===- StrictJson.cpp - JSON in which nothing is dropped ------------------===//
//
// A scan without recursion finds what LLVM's parser accepts and we do not. It
// takes any text: whether the text is JSON at all is left to the parser, which
// runs only on what is not nested too deep.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Input/StrictJson.h"
#include "fsdp/Support/Json.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include <cmath>

using namespace fsdp;
using llvm::StringRef;
namespace json = llvm::json;

namespace {

class Scan {
public:
  Scan(StringRef text, StringRef root) : text(text), root(root) {}

  /// Goes through the text, or up to the bracket that is too deep.
  void run();

  /// What is wrong in JSON that is otherwise good; empty: nothing.
  std::string problem;
  bool isTooDeep = false;

private:
  /// An object or array that is open where the scan is.
  struct Level {
    bool isObject;
    llvm::StringSet<> keys;
    std::string key;  // of the present member
    size_t index = 0; // of the present element
    bool wantsKey = true;
  };

  void open(bool isObject);
  void readString();
  void readNumber();
  /// "plan.units[2].bucket": the place of the present value.
  std::string place() const;
  void report(const std::string &message);

  StringRef text, root;
  size_t at = 0, line = 1;
  std::vector<Level> levels;
};

} // namespace

std::string Scan::place() const {
  std::string path = root.str();
  for (const Level &level : levels)
    path += level.isObject ? "." + level.key
                           : "[" + std::to_string(level.index) + "]";
  return path;
}

void Scan::report(const std::string &message) {
  if (problem.empty())
    problem = "line " + std::to_string(line) + ": " + message;
}

void Scan::open(bool isObject) {
  if (levels.size() == kMaxJsonDepth) {
    isTooDeep = true;
    problem.clear();
    return report("nested deeper than " + std::to_string(kMaxJsonDepth) +
                  " levels");
  }
  levels.emplace_back();
  levels.back().isObject = isObject;
}

/// Reads a string, and if it is a key remembers it. Keys are compared as what
/// they mean: "a" and "\u0061" are the same.
void Scan::readString() {
  size_t begin = at++;
  while (at < text.size() && text[at] != '"')
    at += text[at] == '\\' ? 2 : 1;
  at = std::min(at + 1, text.size());
  if (levels.empty() || !levels.back().isObject || !levels.back().wantsKey)
    return;
  llvm::Expected<json::Value> key = json::parse(text.slice(begin, at));
  if (!key) // The parser will say so.
    return llvm::consumeError(key.takeError());
  Level &level = levels.back();
  level.key = key->getAsString()->str();
  level.wantsKey = false;
  if (!level.keys.insert(level.key).second)
    report("the key is given twice at " + place());
}

void Scan::readNumber() {
  StringRef number = text.substr(at).take_while([](char c) {
    return llvm::isAlnum(c) || c == '+' || c == '-' || c == '.';
  });
  double value;
  if (!number.getAsDouble(value) && !std::isfinite(value))
    report(number.str() + " is not a finite number at " + place());
  at += number.size();
}

void Scan::run() {
  while (at < text.size() && !isTooDeep) {
    char c = text[at];
    if (c == '"') {
      readString();
      continue;
    }
    if (c == '-' || llvm::isDigit(c)) {
      readNumber();
      continue;
    }
    ++at;
    line += c == '\n';
    if (c == '{' || c == '[')
      open(/*isObject=*/c == '{');
    if (levels.empty())
      continue;
    if (c == '}' || c == ']')
      levels.pop_back();
    if (c == ',') {
      ++levels.back().index;
      levels.back().wantsKey = true;
    }
  }
}

llvm::Expected<json::Value> fsdp::parseStrictJson(StringRef text,
                                                  StringRef root) {
  Scan scan(text, root);
  scan.run();
  if (scan.isTooDeep)
    return llvm::createStringError(scan.problem);
  llvm::Expected<json::Value> value = json::parse(text);
  if (value && !scan.problem.empty())
    return llvm::createStringError(scan.problem);
  return value;
}

std::vector<std::string> fsdp::unknownKeys(const json::Object &object,
                                           llvm::ArrayRef<std::string> known) {
  std::vector<std::string> unknown;
  for (const auto &[key, value] : object)
    if (!llvm::is_contained(known, StringRef(key)))
      unknown.push_back(StringRef(key).str());
  llvm::sort(unknown);
  return unknown;
}
