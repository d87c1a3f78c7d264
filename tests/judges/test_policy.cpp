// A policy that is controlled by the calls of a test. The argument "judge" is the verdict about the
// call, and "result" the verdict about its result. The name of a tool is the verdict about its
// entry in lists.
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

namespace {

constexpr std::string_view rewritten = R"({"written":"by the policy"})";

// Returns the string value of the first member with this name.
std::string value_of(std::string_view json, std::string_view name) {
  const std::string key = "\"" + std::string(name) + "\"";
  auto at = json.find(key);
  if (at == std::string_view::npos) return {};
  at = json.find('"', json.find(':', at + key.size()));
  if (at == std::string_view::npos) return {};
  return std::string(json.substr(at + 1, json.find('"', at + 1) - at - 1));
}

// Sends invalid data on every socket.
void scribble() {
  char garbage[96];
  std::memset(garbage, 0xee, sizeof garbage);
  for (int fd = 3; fd < 64; ++fd) ::send(fd, garbage, sizeof garbage, MSG_NOSIGNAL | MSG_DONTWAIT);
}

class TestPolicy {
 public:
  static constexpr bh::Info info{.id = "test-policy",
                                 .name = "Test policy",
                                 .version = "1.0.0",
                                 .vendor = "Tests",
                                 .config_schema = R"({"type":"object"})",
                                 .provides = {BH_EXT_POLICY}};

  explicit TestPolicy(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    policy_ = host_.ext<bh_host_policy>(BH_EXT_HOST_POLICY);
    if (policy_ == nullptr)
      return bh::fail(error, BH_E_UNSUPPORTED, "this host does not support policies");
    lists_ = value_of(bh::view(json), "lists") == "filter";
    return BH_OK;
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<TestPolicy>() : nullptr;
  }

  std::uint32_t needs() const noexcept {
    return BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS |
           (lists_ ? std::uint32_t{BH_POLICY_FILTERS_LISTS} : 0);
  }
  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *error) {
    const std::string_view arguments = bh::view(request.arguments);
    results_[request.exchange] = value_of(arguments, "result");
    const std::string wish = value_of(arguments, "judge");
    // Simulates a policy reload while an approval request is pending.
    const bool approved = (request.flags & BH_REQUEST_APPROVED) != 0;
    if (wish == "ask-then-block") {
      return judge(approved ? "block" : "ask", request.exchange, out, error);
    }
    return judge(wish, request.exchange, out, error);
  }
  bh_status observe(const bh_policy_request &request, bh_str, bh_verdict *out, bh_error *error) {
    const std::string wish = std::move(results_[request.exchange]);
    results_.erase(request.exchange);
    return judge(wish, request.exchange, out, error);
  }
  bh_status filter(const bh_policy_request &request, bh_error *) {
    const std::string_view name = bh::view(request.name);
    if (name.starts_with("hidden")) return BH_E_DENIED;
    if (name.starts_with("throws")) throw std::runtime_error("thrown by the policy");
    if (!name.starts_with("later") && !name.starts_with("never")) return BH_OK;
    if (name.starts_with("later")) answer_later({this, request.exchange, true, 0});
    return BH_PENDING;
  }

 private:
  struct Answer {
    TestPolicy *policy;
    std::uint64_t number;
    bool filter;
    std::uint32_t verdict;
  };

  bh_status judge(const std::string &wish, std::uint64_t number, bh_verdict *out, bh_error *error) {
    out->rule = bh::str("test-rule");
    out->verdict = BH_VERDICT_ALLOW;
    out->arguments = bh::str(rewritten);
    if (wish == "block") {
      out->verdict = BH_VERDICT_BLOCK;
      out->reason = bh::str("as the call says");
    } else if (wish == "ask") {
      out->verdict = BH_VERDICT_ASK;
      out->reason = bh::str("as the call says");
    } else if (wish == "rewrite") {
      out->verdict = BH_VERDICT_REWRITE;
    } else if (wish == "nonsense") {
      out->verdict = 77;
    } else if (wish == "no-json") {
      out->verdict = BH_VERDICT_REWRITE;
      out->arguments = bh::str("{");
    } else if (wish == "error") {
      return bh::fail(error, BH_E_IO, "an error of the policy");
    } else if (wish == "throw") {
      throw std::runtime_error("thrown by the policy");
    } else if (wish == "later" || wish == "later-block" || wish == "later-ask") {
      answer_later({this, number, false,
                    std::uint32_t(wish == "later"       ? BH_VERDICT_ALLOW
                                  : wish == "later-ask" ? BH_VERDICT_ASK
                                                        : BH_VERDICT_BLOCK)});
      return BH_PENDING;
    } else if (wish == "never") {
      return BH_PENDING;
    } else if (wish == "hang") {
      for (;;) ::poll(nullptr, 0, -1);
    } else if (wish == "crash") {
      ::raise(SIGKILL);
    } else if (wish == "scribble") {
      scribble();
    } else if (wish == "changed") {
      policy_->changed(host_.ctx());
    }
    return BH_OK;
  }

  void answer_later(Answer answer) {
    auto owned = std::make_unique<Answer>(answer);
    host_.timer_start(
        30,
        [](void *arg) {
          const std::unique_ptr<Answer> it(static_cast<Answer *>(arg));
          it->policy->answer(*it);
        },
        owned.release());
  }
  void answer(const Answer &it) {
    if (it.filter) {
      policy_->filtered(host_.ctx(), it.number, 1);
      return;
    }
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    verdict.verdict = it.verdict;
    verdict.rule = bh::str("test-rule");
    policy_->decided(host_.ctx(), it.number, &verdict);
  }

  bh::Host host_;
  const bh_host_policy *policy_ = nullptr;
  bool lists_ = false;
  std::map<std::uint64_t, std::string> results_;  // verdicts about results, by exchange
};

}  // namespace

BH_PLUGIN(TestPolicy)
