// builtin-http: a tools plugin for web requests.
//
// The HTTP client is provided by another plugin, which may be missing, so each call requests it
// from the host.
#include <bulkhead/abi/ext/draft/event.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <bulkhead/cpp/tools.hpp>

#include <memory>
#include <string>
#include <unordered_map>

#include "builtin-http/call.hpp"
#include "builtin-http/config.hpp"
#include "builtin-http/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {

class BuiltinHttp final : private Call::Owner {
 public:
  // Maximum number of in-flight calls. Additional calls are rejected with an error that suggests a
  // retry.
  static constexpr std::size_t max_calls = 32;

  static constexpr bh::Info info{.id = "builtin-http",
                                 .name = "Web pages",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = config_schema,
                                 .provides = {BH_EXT_TOOLS}};

  explicit BuiltinHttp(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    if (tools_ == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host does not support tools or has no reactor");
    }
    const bh_status status = parse_config(bh::view(json), &config_, error);
    if (status == BH_OK) cache_ = std::make_unique<Cache>(config_.cache_bytes);
    return status;
  }

  bh_status start(bh_error *) { return BH_OK; }
  void drain(std::uint64_t) noexcept { draining_ = true; }

  // Running conversions stop the next time they check `cancelled`. The host keeps this object until
  // they have stopped.
  void stop() noexcept {
    for (const auto &[id, call] : calls_) call->stop();
    std::erase_if(calls_, [](const auto &entry) { return !entry.second->is_converting(); });
  }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<BuiltinHttp>() : nullptr;
  }

  bh_status list(const bh_list_info &wanted, bh_buf *out, bh_error *error) {
    if (wanted.kind != BH_LIST_TOOLS)
      return bh::fail(error, BH_E_UNSUPPORTED, "the plugin has only tools");
    *out = bh::buf(tool_definitions(config_));
    return BH_OK;
  }

  bh_status call_begin(bh_call id, const bh_call_info &call, bh_error *error) {
    if (draining_) return bh::fail(error, BH_E_UNAVAILABLE, "the plugin is stopping");
    if (bh::view(call.method) != "tools/call") {
      return bh::fail(error, BH_E_NOT_FOUND, "the plugin has only tools");
    }
    if (bh::view(call.name) == "echo") return complete(id, echo(bh::view(call.arguments)));
    const Tool *tool = find_tool(config_, bh::view(call.name));
    if (tool == nullptr) return bh::fail(error, BH_E_NOT_FOUND, "unknown tool");
    if (calls_.size() >= max_calls) {
      return bh::fail(error, BH_E_LIMIT, "too many requests are in flight", 500);
    }
    return begin(id, *tool, call);
  }

  void call_cancel(bh_call id, const bh_cancel &) {
    const auto it = calls_.find(id);
    if (it != calls_.end()) it->second->cancel();
  }

 private:
  bh_status begin(bh_call id, const Tool &tool, const bh_call_info &request) {
    std::string problem;
    std::unique_ptr<Task> task = tool.make(bh::view(request.arguments), &problem);
    if (task == nullptr) return complete(id, tool_kit::error_result(problem));
    const auto *http = host_.ext<bh_host_http>(BH_EXT_HOST_HTTP);
    if (http == nullptr) {
      return complete(id, tool_kit::error_result("this gateway has no HTTP client: the plugin "
                                                 "http-client is not loaded"));
    }
    Call::Owner &owner = *this;
    auto call = std::make_unique<Call>(host_, *http, config_, *cache_, owner, id, std::move(task));
    Call &c = *calls_.emplace(id, std::move(call)).first->second;
    c.start(request.deadline_ns, (request.flags & BH_CALL_PROGRESS) != 0);
    return BH_PENDING;
  }

  void answer(std::uint64_t id, std::string &&result) override { complete(id, std::move(result)); }
  void gone(std::uint64_t id) noexcept override { calls_.erase(id); }

  void record(std::uint64_t id, const std::string &event) override {
    const auto *record = host_.ext<bh_host_event>(BH_EXT_HOST_EVENT);
    if (record != nullptr) record->event(host_.ctx(), id, BH_RECORD_NET, bh::str(event));
  }

  void progress(std::uint64_t id, double done, double total, const std::string &message) override {
    const bh_progress report = bh::progress(done, total, message);
    tools_->progress(host_.ctx(), id, &report);
  }

  bh_status complete(bh_call id, std::string &&json) {
    bh_result result{};
    result.size = sizeof result;
    result.kind = BH_RESULT_OK;
    result.json = bh::buf(std::move(json));
    tools_->complete(host_.ctx(), id, &result);
    return BH_OK;
  }

  bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
  Config config_;
  std::unique_ptr<Cache> cache_;
  bool draining_ = false;
  std::unordered_map<bh_call, std::unique_ptr<Call>> calls_;
};

}  // namespace builtin_http

using BuiltinHttp = builtin_http::BuiltinHttp;
BH_PLUGIN(BuiltinHttp)
