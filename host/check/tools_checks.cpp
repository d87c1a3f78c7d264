// The rules of tools plugins. The tools are really called, but without access to files and network.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/tools.hpp"
#include "check/scenarios.hpp"
#include "check/tools_trial.hpp"

namespace bulkhead::check {
namespace {

constexpr int late_ms = Tools::late_ms, answer_ms = Tools::answer_ms, cancel_ms = Tools::cancel_ms;
constexpr std::size_t most_tools = Tools::most_tools;
constexpr std::size_t most_attempts = 100;  // of completing one call

Request call_of(const Item &tool) {
  return {"tools/call", tool.name, tool.example};
}

void check_items(Trial *trial, std::uint32_t kind, const std::string &json) {
  const char *key = kind == BH_LIST_RESOURCES   ? "uri"
                    : kind == BH_LIST_TEMPLATES ? "uriTemplate"
                                                : "name";
  std::set<std::string> names;
  if (!bh::json::valid(json) || !json.starts_with('[')) {
    trial->violated(Rule::lists, "a list is not a JSON array: " + json.substr(0, 80));
    return;
  }
  bh::json::for_each_element(json, [&](std::string_view item) {
    const std::string name = bh::json::member_text(item, key);
    if (name.empty()) {
      trial->violated(Rule::lists, "an item has no " + std::string(key) + ": " +
                                       std::string(item.substr(0, 80)));
    } else if (!names.insert(name).second) {
      trial->violated(Rule::lists, "two items have the " + std::string(key) + " \"" + name + "\"");
    }
    const auto schema = bh::json::member(item, "inputSchema");
    if (kind == BH_LIST_TOOLS && bh::json::member_text(schema, "type") != "object") {
      trial->violated(Rule::lists, "the inputSchema of \"" + name + "\" has not the type object");
    }
    return true;
  });
}

void check_lists(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::lists);
  if (!tools.ready()) return;
  trial->checked(Rule::lists);
  trial->checked(Rule::does_not_block);
  constexpr std::uint32_t undefined = 99;  // a kind that this version does not define
  for (const std::uint32_t kind : std::array<std::uint32_t, 5>{
           BH_LIST_TOOLS, BH_LIST_RESOURCES, BH_LIST_TEMPLATES, BH_LIST_PROMPTS, undefined}) {
    std::string json, again;
    bh_error error = bh::make_error();
    trial->step(Rule::lists, "list()");
    const bh_status status = tools.list_when_known(kind, &json);
    if (status == BH_PENDING) {
      trial->not_checked("BH401: the items of kind " + std::to_string(kind) + " are not known");
    } else if (status == BH_OK && kind == undefined) {
      trial->violated(Rule::lists, "list returns BH_OK for a kind that does not exist");
    } else if (status == BH_OK) {
      check_items(trial, kind, json);
      if (tools.list(kind, &again, &error) == BH_OK && again != json) {
        trial->note("two lists of the same kind differ");
      }
    } else if (status < 0 && status != BH_E_UNSUPPORTED) {
      trial->violated(Rule::lists, "list returns the error " + std::to_string(status));
    }
  }
}

void check_calls(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::completes_once);
  if (!tools.ready()) return;
  trial->checked(Rule::completes_once);
  bh_call id = 0;
  for (const Item &tool : tools.tools()) {
    tools.call(++id, call_of(tool));
    if (tool.example != "{}") tools.call(++id, {"tools/call", tool.name, "{}"});
  }
  tools.host().base().run_for(late_ms);
  for (bh_call call = 1; call <= id; ++call) {
    if (tools.completions(call) > 1) {
      trial->violated(Rule::completes_once, "a call was completed more than once");
    }
  }
  tools.check_results("content");
}

void check_unknown_tool(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::unknown_tool);
  if (!tools.ready()) return;
  trial->checked(Rule::unknown_tool);
  std::vector<std::string> names{"", "no-such-tool", std::string(1'000, 'x')};
  // Names that begin with the name of a tool, or with which it begins.
  std::set<std::string> existing;
  for (const Item &tool : tools.tools(SIZE_MAX)) {
    existing.insert(tool.name);
    if (existing.size() > most_tools || tool.name.empty()) continue;
    names.push_back(tool.name + "x");
    names.push_back(tool.name.substr(0, tool.name.size() - 1));
  }
  bh_call id = 0;
  for (const std::string &name : names) {
    if (existing.contains(name)) continue;
    tools.check_rejected(++id, {"tools/call", name, "{}"});
  }
}

void check_hostile_arguments(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::hostile_arguments);
  if (!tools.ready()) return;
  trial->checked(Rule::hostile_arguments);
  std::string deep = "1";
  for (int i = 0; i < 120; ++i) deep = "[" + deep + "]";
  bh_call id = 0;
  for (const Item &tool : tools.tools()) {
    std::vector<std::string> all{"", "{\"\":null}", "{\"x\":" + deep + "}",
                                 "{\"x\":\"" + std::string(1 << 20, 'x') + "\"}"};
    // The same members with values of other types.
    const std::vector<std::string> values{"null",   "-1",          "1e308",
                                          "\"\"",   "\"\\ud800\"", "\"\\u0000\"",
                                          "[null]", "{\"a\":{}}",  "true"};
    for (const std::string &value : values) {
      std::string members;
      bh::json::for_each_member(tool.example, [&](std::string_view key, std::string_view) {
        members += (members.empty() ? "" : ",") + std::string(key) + ":" + value;
        return true;
      });
      all.push_back("{" + members + "}");
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    for (const std::string &arguments : all) {
      tools.call(++id, {"tools/call", tool.name, arguments});
    }
  }
  tools.check_results("content");
}

void check_cancel(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::cancel);
  if (!tools.ready()) return;
  trial->checked(Rule::cancel);
  tools.cancel(4'711);  // never begun
  bh_call id = 0;
  for (const Item &tool : tools.tools()) {
    bh_error error = bh::make_error();
    const bh_call call = ++id;
    if (tools.begin(call, call_of(tool), &error) != BH_PENDING) continue;
    tools.cancel(call);
    if (!tools.wait(call, cancel_ms)) {
      trial->violated(Rule::cancel, "a cancelled call of \"" + tool.name + "\" is never completed");
    }
    tools.host().base().turn(0);
    if (tools.completions(call) > 1) {
      trial->violated(Rule::cancel,
                      "a cancelled call of \"" + tool.name + "\" is completed more than once");
    }
    // A call that has been completed already. Each call is cancelled at most once.
    const bh_call ended = ++id;
    if (tools.begin(ended, call_of(tool), &error) != BH_PENDING) continue;
    if (tools.wait(ended, answer_ms)) tools.cancel(ended);
  }
}

void check_stop_during_calls(Trial *trial, const Subject &subject) {
  Tools tools(trial, subject, Rule::stop_during_calls);
  if (!tools.ready()) return;
  trial->checked(Rule::stop_during_calls);
  const Held before = held(*trial);
  bh_call id = 0;
  std::vector<bh_call> pending;
  for (const Item &tool : tools.tools()) {
    bh_error error = bh::make_error();
    if (tools.begin(++id, call_of(tool), &error) == BH_PENDING) pending.push_back(id);
  }
  // Pool jobs that are running cannot be stopped, and hosts wait for them.
  tools.host().base().run_until([&] { return tools.host().base().blocking() == 0; }, answer_ms);
  tools.tested().stop();
  check_stopped(trial, Rule::stop_during_calls, &tools.host(), before);
  tools.host().base().forget();
  const std::size_t completed = tools.host().completed().size();
  tools.host().base().run_for(late_ms);
  if (tools.host().completed().size() != completed) {
    trial->violated(Rule::stop_during_calls, "a call is completed after stop");
  }
  tools.tested().destroy();
  check_destroyed(trial, Rule::stop_during_calls, before);
}

void check_rejected_completion(Trial *trial, const Subject &subject) {
  for (const bh_status answer : {BH_STALE, BH_E_LIMIT}) {
    Tools tools(trial, subject, Rule::rejected_completion);
    if (!tools.ready()) return;
    trial->checked(Rule::rejected_completion);
    bh_call id = 0;
    const auto all = tools.tools();
    tools.host().completion = answer;
    for (const Item &tool : all) {
      bh_error error = bh::make_error();
      tools.begin(++id, call_of(tool), &error);
    }
    tools.host().base().run_for(500);
    if (tools.host().attempts() > all.size() * most_attempts) {
      trial->violated(Rule::rejected_completion, "complete() is called again and again");
    }
  }
}

constexpr std::array scenarios{
    Scenario{BH_EXT_TOOLS, check_lists},
    Scenario{BH_EXT_TOOLS, check_calls},
    Scenario{BH_EXT_TOOLS, check_unknown_tool},
    Scenario{BH_EXT_TOOLS, check_hostile_arguments},
    Scenario{BH_EXT_TOOLS, check_cancel},
    Scenario{BH_EXT_TOOLS, check_stop_during_calls},
    Scenario{BH_EXT_TOOLS, check_rejected_completion},
};

}  // namespace

std::span<const Scenario> tools_scenarios() noexcept {
  return scenarios;
}

}  // namespace bulkhead::check
