// A tools plugin. Calls to `echo` complete immediately; calls to `wait` complete after a delay.
//
// All functions run on the gateway's reactor thread, one call at a time. Therefore, no locks are
// needed, and no function may block. Use host_.run_blocking() for blocking work.
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <bulkhead/cpp/tools.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace {

constexpr std::string_view tools_json = R"([
  {"name":"echo","description":"Returns the greeting and its arguments as text.",
   "inputSchema":{"type":"object"},
   "annotations":{"readOnlyHint":true}},
  {"name":"wait","description":"Answers after a delay and reports progress.",
   "inputSchema":{"type":"object","properties":{}},
   "annotations":{"readOnlyHint":true}}
])";

// The JSON Schema for the configuration. The gateway rejects an invalid configuration before it
// calls configure().
constexpr std::string_view schema_json = R"({
  "type":"object","additionalProperties":false,
  "properties":{"greeting":{"type":"string","maxLength":100}}
})";

constexpr int steps = 4;
constexpr std::uint64_t step_ms = 10;

class HelloToolsPlugin {
 public:
  static constexpr bh::Info info{.id = "hello-tools",
                                 .name = "hello-tools",
                                 .version = "1.0.0",
                                 .vendor = "Example",
                                 .config_schema = schema_json,
                                 .provides = {BH_EXT_TOOLS}};

  explicit HelloToolsPlugin(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    if (tools_ == nullptr || !host_.has_reactor()) {
      return bh::fail(error, BH_E_UNSUPPORTED,
                      "this host does not support tools or has no reactor");
    }
    greeting_ = bh::json::member_text(bh::view(json), "greeting");
    return BH_OK;
  }
  bh_status start(bh_error *) {
    host_.log(BH_LOG_INFO, "ready");
    return BH_OK;
  }
  // stop() must release all resources; the gateway checks this. The only resources that this plugin
  // holds are timers.
  void stop() noexcept {
    for (auto &[call, waiting] : waiting_) host_.timer_cancel(waiting->timer);
    waiting_.clear();
  }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<HelloToolsPlugin>() : nullptr;
  }

  bh_status list(const bh_list_info &wanted, bh_buf *out, bh_error *error) {
    if (wanted.kind != BH_LIST_TOOLS) return bh::fail(error, BH_E_UNSUPPORTED, "tools only");
    *out = bh_buf{tools_json.data(), tools_json.size(), nullptr, nullptr};
    return BH_OK;
  }

  bh_status call_begin(bh_call call, const bh_call_info &request, bh_error *error) {
    if (bh::view(request.name) == "echo") {
      answer(call, greeting_ + std::string(bh::view(request.arguments)));
      return BH_OK;
    }
    if (bh::view(request.name) == "wait") {
      auto waiting = std::make_unique<Waiting>(Waiting{this, call, 0, 0});
      arm(*waiting);
      waiting_.emplace(call, std::move(waiting));
      return BH_PENDING;
    }
    return bh::fail(error, BH_E_NOT_FOUND, "unknown tool");
  }

  // A cancelled call must still be completed, although the caller is no longer waiting for it.
  void call_cancel(bh_call call, const bh_cancel &) {
    const auto it = waiting_.find(call);
    if (it == waiting_.end()) return;
    host_.timer_cancel(it->second->timer);
    waiting_.erase(it);
    answer(call, "cancelled");
  }

 private:
  struct Waiting {
    HelloToolsPlugin *plugin;
    bh_call call;
    int step;
    bh_timer timer;

    void on_timer() {
      timer = 0;
      plugin->advance(*this);
    }
  };

  void arm(Waiting &waiting) {
    waiting.timer =
        host_.timer_start(step_ms, bh::contained_callback<&Waiting::on_timer>(&waiting));
  }

  void advance(Waiting &waiting) {
    if (++waiting.step < steps) {
      const bh_progress progress = bh::progress(waiting.step, steps, "waiting");
      tools_->progress(host_.ctx(), waiting.call, &progress);
      arm(waiting);
      return;
    }
    const bh_call call = waiting.call;
    waiting_.erase(call);
    answer(call, "waited");
  }

  void answer(bh_call call, std::string_view text) {
    bh_result result{};
    result.size = sizeof result;
    result.kind = BH_RESULT_OK;
    std::string json;
    bh::json::Writer out(&json);
    out.begin_object().key("content").begin_array();
    out.begin_object().member("type", "text").member("text", text).end_object();
    out.end_array().end_object();
    result.json = bh::buf(std::move(json));
    tools_->complete(host_.ctx(), call, &result);
  }

  bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
  std::string greeting_;
  std::unordered_map<bh_call, std::unique_ptr<Waiting>> waiting_;
};

}  // namespace

BH_PLUGIN(HelloToolsPlugin)
