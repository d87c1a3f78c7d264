#include "check/tools_trial.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/json.hpp"
#include "bulkhead/cpp/tools.hpp"

namespace bulkhead::check {
namespace {

constexpr std::uint64_t most_blocked_ms = 1'000;  // how long a function may block the reactor

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

std::string named(const Request &request) {
  const std::string_view what = request.method == "tools/call" ? "call" : request.method;
  return std::string(what) + " of \"" + std::string(request.name.substr(0, 100)) + "\"";
}

}  // namespace

bh_status Tools::list(std::uint32_t kind, std::string *out, bh_error *error) {
  bh_buf items{};
  const bh_list_info info = bh::list_info(kind);
  const bh_status status =
      timed(&trial_, "list()", [&] { return table_->list(tested_->self(), &info, &items, error); });
  if (status == BH_OK) *out = bh::Buf(items).view();
  return status;
}

bh_status Tools::list_when_known(std::uint32_t kind, std::string *out) {
  bh_error error = bh::make_error();
  bh_status status = list(kind, out, &error);
  for (int i = 0; status == BH_PENDING && i < 20; ++i) {
    host_.base().run_for(100);
    status = list(kind, out, &error);
  }
  return status;
}

std::vector<Item> Tools::tools(std::size_t most) {
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

bh_status Tools::begin(bh_call call, const Request &request, bh_error *error) {
  bh_call_info info{};
  info.size = sizeof info;
  info.flags = BH_CALL_PROGRESS;
  info.method = bh::str(request.method);
  info.name = bh::str(request.name);
  info.arguments = bh::str(request.arguments);
  info.deadline_ns = bh::monotonic_ns() + 60'000 * bh::ns_per_ms;
  trial_.step(rule_,
              "a " + named(request) + " with " + std::string(request.arguments.substr(0, 40)));
  return timed(&trial_, "call_begin() of \"" + std::string(request.name) + "\"",
               [&] { return table_->call_begin(tested_->self(), call, &info, error); });
}

void Tools::cancel(bh_call call) {
  trial_.step(rule_, "call_cancel()");
  const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT);
  timed(&trial_, "call_cancel()", [&] {
    table_->call_cancel(tested_->self(), call, &cancel);
    return 0;
  });
}

bool Tools::wait(bh_call call, int ms) {
  return host_.base().run_until([&] { return completions(call) > 0; }, ms);
}

bool Tools::call(bh_call id, const Request &request) {
  bh_error error = bh::make_error();
  const bh_status status = begin(id, request, &error);
  const std::string what = "a " + named(request) + " ";
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
  const auto all = host_.completed();
  return std::any_of(all.begin(), all.end(),
                     [&](const auto &one) { return one.call == id && one.kind == BH_RESULT_OK; });
}

void Tools::check_input_request(const std::string &json) {
  const bool has_bits = BH_HAS(bh_tools, table_, features) && table_->features != nullptr;
  const std::uint32_t bits = has_bits ? table_->features(tested_->self()) : 0;
  if ((bits & BH_TOOLS_ASKS_INPUT) == 0) {
    trial_.violated(rule_, "a result asks for input, but features() lacks BH_TOOLS_ASKS_INPUT");
  }
  const std::string start = ": " + json.substr(0, 80);
  const bool object = bh::json::valid(json) && json.starts_with('{');
  const std::string_view requests =
      object ? bh::json::member(json, "inputRequests") : std::string_view{};
  if (requests.empty() && (!object || bh::json::member(json, "requestState").empty())) {
    trial_.violated(
        rule_, "a result that asks for input has no inputRequests and no requestState" + start);
  } else if (!bh::json::member(json, "resultType").empty()) {
    trial_.violated(rule_, "a result that asks for input has a resultType" + start);
  } else if (!requests.empty() && requests != "{}") {  // begin() sets no BH_CALL_... input flags
    trial_.violated(rule_, "a result asks for input that the client does not support" + start);
  }
}

void Tools::check_results(const char *member) {
  for (const auto &one : host_.completed()) {
    if (one.kind == BH_RESULT_INPUT_REQUIRED) {
      check_input_request(one.json);
    } else if (one.kind != BH_RESULT_OK && one.kind != BH_RESULT_ERROR) {
      trial_.violated(rule_, "a result has the kind " + std::to_string(one.kind));
    } else if (!bh::json::valid(one.json) || !one.json.starts_with('{')) {
      trial_.violated(rule_, "a result is not a JSON object: " + one.json.substr(0, 80));
    } else if (one.kind == BH_RESULT_ERROR && bh::json::member(one.json, "code").empty()) {
      trial_.violated(rule_, "an error has no code: " + one.json.substr(0, 80));
    } else if (one.kind == BH_RESULT_OK && bh::json::member(one.json, member).empty()) {
      trial_.violated(rule_,
                      std::string("a result has no ") + member + ": " + one.json.substr(0, 80));
    }
  }
}

void Tools::check_rejected(bh_call id, const Request &request) {
  bh_error error = bh::make_error();
  const bh_status status = begin(id, request, &error);
  check_error(&trial_, rule_, "call_begin", status, error);
  wait(id, status == BH_PENDING ? answer_ms : 0);
  const auto all = host_.completed();
  const bool is_error = std::any_of(all.begin(), all.end(), [&](const auto &one) {
    return one.call == id &&
           (one.kind == BH_RESULT_ERROR || bh::json::member(one.json, "isError") == "true");
  });
  if (status >= 0 && !is_error) trial_.violated(rule_, "a " + named(request) + " succeeds");
}

}  // namespace bulkhead::check
