// The rules of tools plugins. The tools are really called, but without access to files and network.
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json.hpp"
#include "check/scenarios.hpp"
#include "check/started.hpp"

namespace bulkhead::check {
namespace {

constexpr std::uint64_t most_blocked_ms = 1'000;  // how long a function may block the reactor
constexpr int answer_ms = 3'000;  // how long a call may take until its result is not checked
constexpr int cancel_ms = 4'000;  // how long a cancelled call may take; less than a step's limit
constexpr int late_ms = 50;       // how long to wait for completions that must not happen
constexpr std::size_t most_tools = 200;
constexpr std::size_t most_attempts = 100;  // of completing one call

struct Item {
  std::string name, example;  // `example`: arguments with the required members
};

// Returns a value of the type that a property's schema declares.
std::string example_of(std::string_view schema) {
  const std::string type = bh::json::member_text(schema, "type");
  if (type == "number" || type == "integer") return "1";
  if (type == "boolean") return "true";
  if (type == "array") return "[]";
  if (type == "object") return "{}";
  if (type == "null") return "null";
  return "\"x\"";
}

std::string example_arguments(std::string_view tool) {
  const auto schema = bh::json::member(tool, "inputSchema");
  const auto properties = bh::json::member(schema, "properties");
  std::string out;
  bh::json::for_each_element(bh::json::member(schema, "required"), [&](std::string_view name) {
    out += (out.empty() ? "" : ",") + std::string(name) + ":" +
           example_of(bh::json::member(properties, bh::json::unquote(name)));
    return true;
  });
  return "{" + out + "}";
}

// Runs a function of the plugin, and reports if it blocks.
template <class F>
auto timed(Trial *trial, const std::string &what, F &&f) {
  const std::uint64_t before = bh::monotonic_ms();
  const auto result = f();
  const std::uint64_t took = bh::monotonic_ms() - before;
  if (took > most_blocked_ms) {
    trial->violated(Rule::does_not_block,
                    what + " blocked the reactor thread for " + std::to_string(took) + " ms");
  }
  return result;
}

// A started tools plugin.
class Tools : public Started<bh_tools> {
 public:
  Tools(Trial *trial, const Subject &subject, Rule rule)
      : Started(trial, subject, rule, BH_EXT_TOOLS) {}

  bh_status list(std::uint32_t kind, std::string *out, bh_error *error) {
    bh_buf items{};
    const bh_status status = timed(
        &trial_, "list()", [&] { return table_->list(tested_->self(), kind, &items, error); });
    if (status == BH_OK) *out = bh::Buf(items).view();
    return status;
  }

  // Waits for a list that is not known yet.
  bh_status list_when_known(std::uint32_t kind, std::string *out) {
    bh_error error = bh::make_error();
    bh_status status = list(kind, out, &error);
    for (int i = 0; status == BH_PENDING && i < 20; ++i) {
      host_.base().run_for(100);
      status = list(kind, out, &error);
    }
    return status;
  }

  // Returns the tools that are called: at most `most`.
  std::vector<Item> tools(std::size_t most = most_tools) {
    std::string json;
    std::vector<Item> out;
    if (list_when_known(BH_LIST_TOOLS, &json) == BH_OK) {
      bh::json::for_each_element(json, [&](std::string_view tool) {
        out.push_back({bh::json::member_text(tool, "name"), example_arguments(tool)});
        return out.size() < most;
      });
    }
    if (out.empty()) trial_.note("no tool is listed, so none was called");
    return out;
  }

  bh_status begin(bh_call call, std::string_view name, std::string_view arguments,
                  bh_error *error) {
    bh_call_info info{};
    info.size = sizeof info;
    info.flags = BH_CALL_PROGRESS;
    info.method = bh::str("tools/call");
    info.name = bh::str(name);
    info.arguments = bh::str(arguments);
    info.deadline_ns = bh::monotonic_ns() + 60'000 * bh::ns_per_ms;
    trial_.step(rule_, "a call of \"" + std::string(name) + "\" with " +
                           std::string(arguments.substr(0, 40)));
    return timed(&trial_, "call_begin() of \"" + std::string(name) + "\"",
                 [&] { return table_->call_begin(tested_->self(), call, &info, error); });
  }
  void cancel(bh_call call) {
    trial_.step(rule_, "call_cancel()");
    timed(&trial_, "call_cancel()", [&] {
      table_->call_cancel(tested_->self(), call);
      return 0;
    });
  }

  std::size_t completions(bh_call call) const { return host_.completions(call); }
  bool wait(bh_call call, int ms) {
    return host_.base().run_until([&] { return completions(call) > 0; }, ms);
  }

  // Makes a call and checks that it is completed exactly once. A call that takes too long is
  // cancelled.
  void call(bh_call id, std::string_view name, std::string_view arguments) {
    bh_error error = bh::make_error();
    const bh_status status = begin(id, name, arguments, &error);
    const std::string what = "a call of \"" + std::string(name) + "\" ";
    if (status < 0) {
      check_error(&trial_, rule_, "call_begin", status, error);
    } else if (status == BH_OK) {
      if (completions(id) == 0) trial_.violated(rule_, what + "returns BH_OK without complete()");
    } else if (status != BH_PENDING) {
      trial_.violated(rule_, what + "returns the status " + std::to_string(status));
    } else if (!wait(id, answer_ms)) {
      trial_.note(what + "was cancelled after " + std::to_string(answer_ms) + " ms");
      cancel(id);
      if (!wait(id, cancel_ms)) trial_.violated(rule_, what + "was never completed");
    }
    host_.base().turn(0);
    const std::size_t count = completions(id);
    if (count > 1) trial_.violated(rule_, what + "was completed more than once");
    if (count > 0 && status < 0) {
      trial_.violated(rule_, what + "returns an error, but was completed");
    }
  }

  void check_results() {
    for (const auto &one : host_.completed()) {
      if (one.kind != BH_RESULT_OK && one.kind != BH_RESULT_ERROR) {
        trial_.violated(rule_, "a result has the kind " + std::to_string(one.kind));
      } else if (!bh::json::valid(one.json) || !one.json.starts_with('{')) {
        trial_.violated(rule_, "a result is not a JSON object: " + one.json.substr(0, 80));
      } else if (one.kind == BH_RESULT_ERROR && bh::json::member(one.json, "code").empty()) {
        trial_.violated(rule_, "an error has no code: " + one.json.substr(0, 80));
      } else if (one.kind == BH_RESULT_OK && bh::json::member(one.json, "content").empty()) {
        trial_.violated(rule_, "a result has no content: " + one.json.substr(0, 80));
      }
    }
  }
};

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
    tools.call(++id, tool.name, tool.example);
    if (tool.example != "{}") tools.call(++id, tool.name, "{}");
  }
  tools.host().base().run_for(late_ms);
  for (bh_call call = 1; call <= id; ++call) {
    if (tools.completions(call) > 1) {
      trial->violated(Rule::completes_once, "a call was completed more than once");
    }
  }
  tools.check_results();
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
    bh_error error = bh::make_error();
    const bh_status status = tools.begin(++id, name, "{}", &error);
    check_error(trial, Rule::unknown_tool, "call_begin", status, error);
    tools.wait(id, status == BH_PENDING ? answer_ms : 0);
    const auto all = tools.host().completed();
    const bool is_error = std::any_of(all.begin(), all.end(), [&](const auto &one) {
      return one.call == id &&
             (one.kind == BH_RESULT_ERROR || bh::json::member(one.json, "isError") == "true");
    });
    if (status >= 0 && !is_error) {
      trial->violated(Rule::unknown_tool, "a call of \"" + name.substr(0, 40) + "\" succeeds");
    }
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
    for (const std::string &arguments : all) tools.call(++id, tool.name, arguments);
  }
  tools.check_results();
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
    if (tools.begin(call, tool.name, tool.example, &error) != BH_PENDING) continue;
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
    if (tools.begin(ended, tool.name, tool.example, &error) != BH_PENDING) continue;
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
    if (tools.begin(++id, tool.name, tool.example, &error) == BH_PENDING) pending.push_back(id);
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
      tools.begin(++id, tool.name, tool.example, &error);
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
