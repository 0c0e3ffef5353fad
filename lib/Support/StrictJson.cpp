//===- StrictJson.cpp - JSON that means one thing -------------------------===//
#include "fsdp/Support/StrictJson.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Text.h"
#include <set>
#include <vector>

using namespace fsdp;
using nlohmann::json;

json rt::parseStrictJson(std::string_view text, std::string &problem) {
  if (isNestedTooDeep(text)) {
    problem = "nested deeper than " + std::to_string(kMaxJsonDepth) + " levels";
    return {};
  }
  std::vector<std::set<std::string>> open; // keys of the objects around
  auto watch = [&](int, json::parse_event_t event, json &value) {
    if (event == json::parse_event_t::object_start)
      open.emplace_back();
    else if (event == json::parse_event_t::object_end)
      open.pop_back();
    else if (event == json::parse_event_t::key) {
      auto key = value.get<std::string>();
      if (!open.back().insert(key).second && problem.empty())
        problem = "'" + printableLine(key) + "' appears twice";
    }
    return true;
  };
  json document = json::parse(text, watch, /*allow_exceptions=*/false);
  if (document.is_discarded())
    problem = "this is not JSON";
  return document;
}
