// A policy plugin. It blocks calls of tools whose name begins with a configured prefix, and removes
// these tools from the lists that clients see.
//
// All functions run on the gateway's reactor thread, one call at a time. Therefore, no locks are
// needed, and no function may block. A policy that needs more time returns BH_PENDING, and calls
// bh_host_policy.decided later.
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/json.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

#include <string>
#include <string_view>
#include <utility>

namespace {

// The JSON Schema for the configuration. The gateway rejects an invalid configuration before it
// calls configure().
constexpr std::string_view schema_json = R"({
  "type":"object","additionalProperties":false,
  "properties":{"blocked_prefix":{"type":"string","minLength":1,"maxLength":64}}
})";

class HelloPolicyPlugin {
 public:
  static constexpr bh::Info info{.id = "hello-policy",
                                 .name = "hello-policy",
                                 .version = "1.0.0",
                                 .vendor = "Example",
                                 .config_schema = schema_json,
                                 .provides = {BH_EXT_POLICY}};

  explicit HelloPolicyPlugin(const bh_host *host) : host_(host) {}

  bh_status configure(bh_str json, bh_error *error) { return reconfigure(json, error); }
  // Applies a changed configuration at run time (bulkhead reload, if the policy runs in the
  // endpoint; in a compartment, a new process is started). If it returns an error, the old
  // configuration remains in use, so the members are set only after the last check.
  bh_status reconfigure(bh_str json, bh_error *error) {
    const std::string_view text = bh::json::trimmed(bh::view(json));
    if (!text.starts_with('{') || !bh::json::valid(text)) {
      return bh::fail(error, BH_E_INVALID, "the configuration is not a JSON object");
    }
    std::string prefix = "delete_";
    if (const auto value = bh::json::member(text, "blocked_prefix"); !value.empty()) {
      prefix = bh::json::unquote(value);
    }
    // An empty prefix would block every tool.
    if (prefix.empty()) {
      return bh::fail(error, BH_E_INVALID, "blocked_prefix: must be a string that is not empty");
    }
    prefix_ = std::move(prefix);
    reason_ = "tools whose name begins with " + bh::in_quotes(prefix_) + " are blocked";
    return BH_OK;
  }
  bh_status start(bh_error *) {
    host_.log(BH_LOG_INFO, reason_);
    return BH_OK;
  }
  void stop() noexcept {}  // this plugin holds no timers, watches or descriptors
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<HelloPolicyPlugin>() : nullptr;
  }

  // The gateway calls only the functions, and sends only the data, that needs() requests. To see
  // arguments or results, add BH_POLICY_READS_ARGUMENTS or BH_POLICY_READS_RESULTS.
  std::uint32_t needs() const noexcept { return BH_POLICY_DECIDES | BH_POLICY_FILTERS_LISTS; }

  bh_status decide(const bh_policy_request &request, bh_verdict *out, bh_error *error) {
    if (request.event != BH_EVENT_CALL) {
      return bh::fail(error, BH_E_UNSUPPORTED, "this policy evaluates only calls");
    }
    out->verdict = blocked(request) ? BH_VERDICT_BLOCK : BH_VERDICT_ALLOW;
    if (out->verdict == BH_VERDICT_BLOCK) {
      out->rule = bh::str("blocked-prefix");
      out->reason = bh::str(reason_);  // must be valid until the next call of this instance
    }
    return BH_OK;
  }
  bh_status filter(const bh_policy_request &request, bh_error *) {
    return blocked(request) ? BH_E_DENIED : BH_OK;
  }

 private:
  bool blocked(const bh_policy_request &request) const {
    return bh::view(request.method) == "tools/call" && bh::view(request.name).starts_with(prefix_);
  }

  const bh::Host host_;
  std::string prefix_, reason_;
};

}  // namespace

BH_PLUGIN(HelloPolicyPlugin)
