// A policy whose verdicts name HELD_VERSION, the build of the plugin. It decides calls by the name
// of the tool: `sleep` is allowed after 20 ms, `hold_large` is blocked, `hold` is blocked after the
// process has received SIGUSR1, and other tools are allowed. Version "two" does not list
// `hold_secret`. Version "fails" returns an error from start, and version "crashes" aborts there.
// The text `say` of the configuration is part of the reason for blocking `hold_large`. With "fail",
// the configuration is rejected; with "slowly", the plugin starts after SIGUSR1 (at most 20 s).
#include <signal.h>

#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <chrono>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr std::string_view version = HELD_VERSION;
constexpr std::uint64_t decide_ms = 20, look_ms = 5;

volatile sig_atomic_t released = 0;

class HeldPolicy {
 public:
  static constexpr bh::Info info{.id = PLUGIN_ID,
                                 .name = "Held policy",
                                 .version = HELD_VERSION,
                                 .vendor = "Bulkhead",
                                 .config_schema = {},
                                 .provides = {BH_EXT_POLICY}};

  explicit HeldPolicy(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    const std::string_view config = bh::view(json);
    constexpr std::string_view say = R"("say":")";
    if (const std::size_t at = config.find(say); at != std::string_view::npos) {
      const std::string_view text = config.substr(at + say.size());
      decided_by_ += " " + std::string(text.substr(0, text.find('"')));
    }
    if (decided_by_.ends_with(" fail")) {
      return bh::fail(error, BH_E_INVALID, "the configuration says fail");
    }
    policy_ = host_.ext<bh_host_policy>(BH_EXT_HOST_POLICY);
    if (policy_ == nullptr) return bh::fail(error, BH_E_UNSUPPORTED, "this host has no policies");
    return BH_OK;
  }
  bh_status start(bh_error *error) {
    if (version == "fails") return bh::fail(error, BH_E_UNAVAILABLE, "no such rule book");
    if (version == "crashes") std::abort();
    struct sigaction action{};
    action.sa_handler = [](int) { released = 1; };
    ::sigaction(SIGUSR1, &action, nullptr);
    if (decided_by_.ends_with(" slowly")) {
      for (int i = 0; i < 2'000 && released == 0; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      released = 0;
    }
    look_later();
    return BH_OK;
  }
  void stop() noexcept { host_.timer_cancel(timer_); }
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<HeldPolicy>() : nullptr;
  }

  std::uint32_t needs() const noexcept { return BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS; }
  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *) {
    const std::string_view name = bh::view(request.name);
    if (name == "sleep") {
      deciding_.emplace(host_.now_ns() + decide_ms * 1'000'000, request.exchange);
      return BH_PENDING;
    }
    if (name == "hold") {
      held_.push_back(request.exchange);
      return BH_PENDING;
    }
    *out =
        name == "hold_large" ? verdict(BH_VERDICT_BLOCK, decided_by_) : verdict(BH_VERDICT_ALLOW);
    return BH_OK;
  }
  bh_status filter(const bh_policy_request &request, bh_error *) {
    return version == "two" && bh::view(request.name) == "hold_secret" ? BH_E_DENIED : BH_OK;
  }

 private:
  static constexpr std::string_view held_by = "held by " HELD_VERSION;

  static bh_verdict verdict(std::uint32_t kind, std::string_view reason = {}) {
    bh_verdict out{};
    out.size = sizeof out;
    out.verdict = kind;
    out.rule = bh::str("version-" HELD_VERSION);
    out.reason = bh::str(reason);
    return out;
  }

  void look_later() {
    timer_ =
        host_.timer_start(look_ms, [](void *arg) { static_cast<HeldPolicy *>(arg)->look(); }, this);
  }
  void look() {
    look_later();
    while (!deciding_.empty() && deciding_.begin()->first <= host_.now_ns()) {
      answer(deciding_.extract(deciding_.begin()).mapped(), verdict(BH_VERDICT_ALLOW));
    }
    if (released == 0) return;
    for (const std::uint64_t one : std::exchange(held_, {})) {
      answer(one, verdict(BH_VERDICT_BLOCK, held_by));
    }
  }
  void answer(std::uint64_t exchange, const bh_verdict &decision) {
    policy_->decided(host_.ctx(), exchange, &decision);
  }

  bh::Host host_;
  const bh_host_policy *policy_ = nullptr;
  std::string decided_by_ = "decided by " HELD_VERSION;
  std::multimap<std::uint64_t, std::uint64_t> deciding_;  // by time in ns
  std::vector<std::uint64_t> held_;
  bh_timer timer_ = 0;
};

}  // namespace

BH_PLUGIN(HeldPolicy)
