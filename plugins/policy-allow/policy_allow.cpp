// Allows every call. needs() returns 0, so the host does not call the policy and there is no
// overhead.
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

class PolicyAllow {
 public:
  static constexpr bh::Info info{
      .id = "policy-allow",
      .name = "Allow everything",
      .version = "0.1.0",
      .vendor = "Bulkhead",
      .config_schema = R"({"type":"object","additionalProperties":false})",
      .provides = {BH_EXT_POLICY}};

  explicit PolicyAllow(const bh_host *) {}

  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<PolicyAllow>() : nullptr;
  }

  std::uint32_t needs() const noexcept { return 0; }

  // Only called by hosts that ignore needs().
  bh_status decide(const bh_policy_request &, bh_verdict *out, bh_error *) { return allow(out); }
  bh_status observe(const bh_policy_request &, bh_str, bh_verdict *out, bh_error *) {
    return allow(out);
  }
  bh_status filter(const bh_policy_request &, bh_error *) { return BH_OK; }

 private:
  static bh_status allow(bh_verdict *out) noexcept {
    out->verdict = BH_VERDICT_ALLOW;
    out->rule = bh::str("allow-all");
    out->reason = {};
    out->arguments = {};
    return BH_OK;
  }
};

BH_PLUGIN(PolicyAllow)
