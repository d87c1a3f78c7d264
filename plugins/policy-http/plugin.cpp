// Queries an external policy decision point for each call and, if configured, for results. If no
// valid response arrives in time, the call or result is rejected. A response is cached for its time
// to live.
//
// Runs on the reactor thread.
#include <bulkhead/abi/ext/policy.h>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "egress-kit/post.hpp"
#include "policy-http/answer.hpp"
#include "policy-http/cache.hpp"
#include "policy-http/config.hpp"
#include "policy-http/question.hpp"

namespace policy_http {

constexpr std::uint64_t max_answer_bytes = 256 << 10;
// The rule reported for calls that are rejected because of a failure. The host uses the same name.
constexpr std::string_view failed_rule = "policy-failed", usual_rule = "policy-http";

class PolicyHttp {
 public:
  static constexpr bh::Info info{.id = "policy-http",
                                 .name = "External policy decision point over HTTP",
                                 .version = "0.1.0",
                                 .vendor = "Bulkhead",
                                 .config_schema = R"({"type":"object"})",
                                 .provides = {BH_EXT_POLICY}};

  explicit PolicyHttp(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) {
    if (!host_.has_reactor()) return bh::fail(error, BH_E_UNSUPPORTED, "the host has no reactor");
    if (std::string bad = Config::read(bh::view(json), &config_); !bad.empty()) {
      return bh::fail(error, BH_E_INVALID, bad);
    }
    cache_.emplace(config_.cache_entries, config_.cache_ttl_max_ms);
    return BH_OK;
  }

  bh_status start(bh_error *error) {
    host_policy_ = host_.ext<bh_host_policy>(BH_EXT_HOST_POLICY);
    if (host_policy_ == nullptr) {
      return bh::fail(error, BH_E_UNSUPPORTED, "the host does not accept asynchronous verdicts");
    }
    const std::string bad = egress::announce(host_, config_.server);
    return bad.empty() ? BH_OK : bh::fail(error, BH_E_UNAVAILABLE, bad);
  }

  void stop() noexcept { open_.clear(); }

  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<PolicyHttp>() : nullptr;
  }

  std::uint32_t needs() const noexcept {
    std::uint32_t bits = 0;
    if (config_.requests) bits |= BH_POLICY_DECIDES;
    if (config_.requests && config_.send != Send::names) bits |= BH_POLICY_READS_ARGUMENTS;
    if (config_.responses) bits |= BH_POLICY_READS_RESULTS;
    return bits;
  }
  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *error) {
    return ask(request, false, bh::view(request.arguments), out, error);
  }
  bh_status observe(const bh_policy_request &request, bh_str result, bh_verdict *out,
                    bh_error *error) {
    return ask(request, true, bh::view(result), out, error);
  }

 private:
  struct Open {
    Question question;
    std::unique_ptr<egress::Post> post;
  };

  bh_status ask(const bh_policy_request &request, bool response, std::string_view text,
                bh_verdict *out, bh_error *error) {
    Question question = make_question(config_, request, response, text);
    if (const Answer *known = cache_->find(question.key, host_.now_ns())) {
      answer_ = *known;
      fill(answer_, out);
      return BH_OK;
    }
    if (open_.size() >= config_.max_in_flight) {
      return bh::fail(error, BH_E_LIMIT,
                      "too many queries are in flight to " + config_.server.shown() +
                          " (max_in_flight = " + std::to_string(config_.max_in_flight) + ")");
    }
    // An endpoint that has been restarted may reuse a request number. The new request then replaces
    // the old one.
    const std::uint64_t number = request.exchange;
    Open &open = open_[number];
    open.question = std::move(question);
    open.post = std::make_unique<egress::Post>(
        host_, config_.server, max_answer_bytes,
        [this, number](egress::Post::Answer &&answer) { answered(number, std::move(answer)); });
    open.post->start(open.question.body);
    open.question.body = {};
    return BH_PENDING;
  }

  void answered(std::uint64_t number, egress::Post::Answer &&got) {
    auto node = open_.extract(number);
    if (node.empty()) return;
    const Question &question = node.mapped().question;
    Answer answer;
    std::string problem = std::move(got.problem);
    if (problem.empty() && got.status != 200) {
      problem = "HTTP status " + std::to_string(got.status);
    }
    if (problem.empty()) {
      problem = read_answer(config_.style, question, got.body, &answer);
      if (!problem.empty()) problem = "invalid response: " + problem;
    }
    note(problem);
    if (!problem.empty()) {
      answer = {};
      answer.rule = failed_rule;
      answer.reason = "the decision point " + config_.server.shown() + ": " + problem;
    } else {
      cache_->keep(question.key, answer, host_.now_ns());
    }
    bh_verdict verdict{};
    verdict.size = sizeof verdict;
    fill(answer, &verdict);
    host_policy_->decided(host_.ctx(), number, &verdict);
  }

  // Logs the first failure and the recovery, but not every rejected call.
  void note(const std::string &problem) {
    if (problem.empty() != failing_) return;
    failing_ = !failing_;
    host_.log(failing_ ? BH_LOG_ERROR : BH_LOG_INFO,
              "the decision point " + config_.server.shown() +
                  (failing_ ? ": " + problem + "; calls are rejected" : " has recovered"));
  }

  static void fill(const Answer &answer, bh_verdict *out) {
    out->verdict = answer.verdict;
    out->rule = answer.rule.empty() ? bh::str(usual_rule) : bh::str(answer.rule);
    out->reason = bh::str(answer.reason);
    out->arguments = bh::str(answer.rewritten);
  }

  const bh::Host host_;
  const bh_host_policy *host_policy_ = nullptr;
  Config config_;
  std::optional<Cache> cache_;
  std::unordered_map<std::uint64_t, Open> open_;  // by request number
  Answer answer_;  // the host borrows its strings until the next call
  bool failing_ = false;
};

}  // namespace policy_http

using PolicyHttp = policy_http::PolicyHttp;
BH_PLUGIN(PolicyHttp)
