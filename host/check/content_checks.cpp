// The rules of tools plugins that also have resources or prompts.
#include <array>
#include <string>
#include <vector>

#include "bulkhead/cpp/json.hpp"
#include "check/scenarios.hpp"
#include "check/tools_trial.hpp"

namespace bulkhead::check {
namespace {

constexpr std::size_t most_items = 50;  // of each kind
constexpr std::uint32_t known_features = BH_TOOLS_SUBSCRIBE | BH_TOOLS_ASKS_INPUT;

// One kind of items, and the method that returns the content of an item.
struct ContentKind {
  std::uint32_t list;
  const char *key;     // of an item in the list
  const char *method;  // "resources/read" or "prompts/get"
  const char *member;  // of the result
};
constexpr ContentKind resource_kind{BH_LIST_RESOURCES, "uri", "resources/read", "contents"};
constexpr ContentKind prompt_kind{BH_LIST_PROMPTS, "name", "prompts/get", "messages"};

// Returns the arguments of a prompt, each with this JSON value: all of them, or the required ones.
std::string prompt_arguments(std::string_view prompt, std::string_view value, bool all) {
  std::string out;
  bh::json::for_each_element(bh::json::member(prompt, "arguments"), [&](std::string_view argument) {
    if (all || bh::json::member(argument, "required") == "true") {
      out += (out.empty() ? "" : ",") + std::string(bh::json::member(argument, "name")) + ":" +
             std::string(value);
    }
    return true;
  });
  return "{" + out + "}";
}

// Returns false if the plugin has no list of this kind.
bool list_items(Tools *tools, const ContentKind &kind, std::vector<std::string> *items) {
  std::string json;
  if (tools->list_when_known(kind.list, &json) != BH_OK) return false;
  bh::json::for_each_element(json, [&](std::string_view item) {
    items->emplace_back(item);
    return items->size() < most_items;
  });
  return true;
}

void check_content(Trial *trial, const Subject &subject, const ContentKind &kind) {
  Tools tools(trial, subject, Rule::contents);
  std::vector<std::string> items;
  if (!tools.ready() || !list_items(&tools, kind, &items) || items.empty()) return;
  trial->checked(Rule::contents);
  bh_call id = 0;
  for (const std::string &item : items) {
    const std::string name = bh::json::member_text(item, kind.key);
    if (kind.list == BH_LIST_RESOURCES) {
      tools.call(++id, {kind.method, name, ""});
      continue;
    }
    tools.call(++id, {kind.method, name, prompt_arguments(item, "\"x\"", false)});
    for (const char *value : {"\"\"", "null", "[1]", "{\"a\":{}}", "\"\\ud800\""}) {
      tools.call(++id, {kind.method, name, prompt_arguments(item, value, true)});
    }
    for (const char *arguments : {"", "{}", "{\"\":null}"}) {
      tools.call(++id, {kind.method, name, arguments});
    }
  }
  tools.host().base().run_for(Tools::late_ms);
  for (bh_call call = 1; call <= id; ++call) {
    if (tools.completions(call) > 1) {
      trial->violated(Rule::contents, "a request was completed more than once");
    }
  }
  tools.check_results(kind.member);
  for (const auto &one : tools.host().completed()) {
    if (one.kind == BH_RESULT_OK && !bh::json::member(one.json, kind.member).starts_with('[')) {
      trial->violated(Rule::contents, std::string(kind.member) + " is not an array");
    }
  }
}

void check_resources(Trial *trial, const Subject &subject) {
  check_content(trial, subject, resource_kind);
}
void check_prompts(Trial *trial, const Subject &subject) {
  check_content(trial, subject, prompt_kind);
}

void check_unknown_content(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::unknown_content);
  if (!tools.ready()) return;
  bh_call id = 0;
  for (const ContentKind &kind : {resource_kind, prompt_kind}) {
    std::vector<std::string> items;
    if (!list_items(&tools, kind, &items)) continue;
    trial->checked(Rule::unknown_content);
    for (const std::string &name :
         {std::string(), std::string("no-such:item"), "no-such:" + std::string(1'000, 'x')}) {
      tools.check_rejected(++id, {kind.method, name, ""});
    }
  }
}

void check_subscriptions(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::subscriptions);
  if (!tools.ready()) return;
  const bh_tools &table = tools.table();
  if (!BH_HAS(bh_tools, &table, features) || table.features == nullptr) return;
  trial->checked(Rule::subscriptions);
  trial->step(Rule::subscriptions, "features()");
  const std::uint32_t features = table.features(tools.self());
  if ((features & ~known_features) != 0) {
    trial->violated(Rule::subscriptions, "features returns bits that are not defined");
  }
  tools.host().base().run_for(Tools::late_ms);
  if (table.features(tools.self()) != features) {
    trial->violated(Rule::subscriptions, "features returns other bits in a second call");
  }
  std::vector<std::string> items;
  if ((features & BH_TOOLS_SUBSCRIBE) == 0 || !list_items(&tools, resource_kind, &items)) return;
  bh_call id = 0;
  for (const std::string &item : items) {
    const std::string uri = bh::json::member_text(item, "uri");
    const auto repeat = [&](const char *method) {
      const bool first = tools.call(++id, {method, uri, ""});
      const bool second = tools.call(++id, {method, uri, ""});
      if (first && !second) {
        trial->violated(Rule::subscriptions,
                        std::string(method) + " of \"" + uri + "\" succeeds only once");
      }
    };
    repeat("resources/subscribe");
    repeat("resources/unsubscribe");
  }
  for (const auto &one : tools.host().completed()) {
    if (one.kind == BH_RESULT_OK && !one.json.starts_with('{')) {
      trial->violated(Rule::subscriptions, "a result is not a JSON object");
    }
  }
}

constexpr std::array scenarios{
    Scenario{BH_EXT_TOOLS, check_resources},
    Scenario{BH_EXT_TOOLS, check_prompts},
    Scenario{BH_EXT_TOOLS, check_unknown_content},
    Scenario{BH_EXT_TOOLS, check_subscriptions},
};

}  // namespace

std::span<const Scenario> content_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
