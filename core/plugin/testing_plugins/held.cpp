// A tools plugin whose calls, except those to `which` and `sleep`, complete only after its process
// has received SIGUSR1, so that tests control when they complete. `sleep` completes after "ms"
// milliseconds and returns "mark". Results contain HELD_VERSION, which identifies the build of the
// plugin. When a call to hold_secret is released, the plugin stores HELD_VERSION as a secret, reads
// it back and returns it. Version "fails" returns an error from start, and "crashes" aborts there.
#include <signal.h>

#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json_reader.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view tools_json = R"([{"name":"which","inputSchema":{"type":"object"}},)"
                                        R"({"name":"sleep","inputSchema":{"type":"object"}},)"
                                        R"({"name":"hold","inputSchema":{"type":"object"}},)"
                                        R"({"name":"hold_secret","inputSchema":{"type":"object"}},)"
                                        R"({"name":"hold_large","inputSchema":{"type":"object"}}])";
constexpr std::string_view schema_json =
    R"({"type":"object","additionalProperties":false,"properties":{"say":{"type":"string"}}})";
constexpr std::size_t large_bytes = 8u << 20;
constexpr std::uint64_t look_ms = 10;

volatile sig_atomic_t released = 0;

class Held {
 public:
  static constexpr bh::Info info{.id = PLUGIN_ID,
                                 .name = "Held",
                                 .version = HELD_VERSION,
                                 .vendor = "Bulkhead",
                                 .config_schema = schema_json,
                                 .provides = {BH_EXT_TOOLS}};

  explicit Held(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    tools_ = host_.ext<bh_host_tools>(BH_EXT_HOST_TOOLS);
    if (tools_ == nullptr) return bh::fail(error, BH_E_UNSUPPORTED, "this host has no tools");
    secrets_ = host_.ext<bh_host_secrets>(BH_EXT_HOST_SECRETS);
    config_ = bh::view(json);
    return BH_OK;
  }
  bh_status start(bh_error *error) {
    constexpr std::string_view version = HELD_VERSION;
    if (version == "fails") return bh::fail(error, BH_E_IO, "no such device");
    if (version == "crashes") std::abort();
    struct sigaction action{};
    action.sa_handler = [](int) { released = 1; };
    ::sigaction(SIGUSR1, &action, nullptr);
    look_later();
    return BH_OK;
  }
  void stop() noexcept { host_.timer_cancel(timer_); }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_TOOLS) ? bh::tools_table<Held>() : nullptr;
  }
  bh_status list(const bh_list_info &wanted, bh_buf *out, bh_error *error) {
    if (wanted.kind != BH_LIST_TOOLS) return bh::fail(error, BH_E_UNSUPPORTED, "tools only");
    *out = bh_buf{tools_json.data(), tools_json.size(), nullptr, nullptr};
    return BH_OK;
  }
  bh_status call_begin(bh_call call, const bh_call_info &request, bh_error *) {
    const std::string_view name = bh::view(request.name);
    if (name == "which") {
      answer(call, 0);
      return BH_OK;
    }
    if (name == "sleep") {
      const std::string_view arguments = bh::view(request.arguments);
      std::uint64_t ms = 0;
      bh::json::read_integer(bh::json::member(arguments, "ms"), &ms);
      sleeping_.emplace(host_.now_ns() + ms * 1'000'000,
                        std::pair(call, bh::json::member_text(arguments, "mark")));
      return BH_PENDING;
    }
    waiting_.push_back({call, name == "hold_large" ? large_bytes : 0, name == "hold_secret"});
    return BH_PENDING;
  }
  void call_cancel(bh_call, const bh_cancel &) {}

 private:
  struct Waiting {
    bh_call call;
    std::size_t more;
    bool secret;
  };

  void look_later() {
    timer_ = host_.timer_start(look_ms, [](void *arg) { static_cast<Held *>(arg)->look(); }, this);
  }
  void look() {
    look_later();
    while (!sleeping_.empty() && sleeping_.begin()->first <= host_.now_ns()) {
      const auto [call, mark] = sleeping_.extract(sleeping_.begin()).mapped();
      send(call, std::string(HELD_VERSION) + " " + mark);
    }
    if (released == 0) return;
    for (const Waiting &one : std::exchange(waiting_, {})) {
      one.secret ? send(one.call, kept_secret()) : answer(one.call, one.more);
    }
  }
  // Stores a secret and reads it back. Returns its value, or the status of the function that
  // failed.
  std::string kept_secret() {
    if (secrets_ == nullptr) return "no secrets";
    char buf[16];
    std::uint64_t n = 0;
    bh_status status = secrets_->put(host_.ctx(), bh::str("held"), bh::str(HELD_VERSION));
    if (status == BH_OK) status = secrets_->get(host_.ctx(), bh::str("held"), buf, sizeof buf, &n);
    return status == BH_OK ? std::string(buf, n) : "status " + std::to_string(status);
  }
  // Completes the call. The result consists of the plugin's version, the configured text (if any),
  // and `more` additional bytes.
  void answer(bh_call call, std::size_t more) {
    std::string text = HELD_VERSION;
    const std::size_t said = config_.find(R"("say":")");
    if (said != std::string::npos) {
      const std::size_t at = said + 7;
      text += " " + config_.substr(at, config_.find('"', at) - at);
    }
    text.append(more, 'x');
    send(call, text);
  }
  void send(bh_call call, const std::string &text) {
    bh_result result{};
    result.size = sizeof result;
    result.kind = BH_RESULT_OK;
    result.json = bh::buf(R"({"content":[{"type":"text","text":")" + text + R"("}]})");
    tools_->complete(host_.ctx(), call, &result);
  }

  bh::Host host_;
  const bh_host_tools *tools_ = nullptr;
  const bh_host_secrets *secrets_ = nullptr;
  std::string config_;
  std::vector<Waiting> waiting_;
  std::multimap<std::uint64_t, std::pair<bh_call, std::string>> sleeping_;  // by time in ns
  bh_timer timer_ = 0;
};

}  // namespace

BH_PLUGIN(Held)
