// A policy that rejects a new configuration with the status in it: {"status": -9}. It allows all
// calls. Without "status", it accepts the configuration.
#include <cstdlib>
#include <string>
#include <string_view>

#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>

namespace {

class RefusingPolicy {
 public:
  static constexpr bh::Info info{.id = "refusing-policy",
                                 .name = "Refusing policy",
                                 .version = "1.0.0",
                                 .vendor = "Tests",
                                 .config_schema = R"({"type":"object"})",
                                 .provides = {BH_EXT_POLICY}};

  explicit RefusingPolicy(const bh_host *) {}

  bh_status configure(bh_str json, bh_error *error) { return reconfigure(json, error); }
  bh_status reconfigure(bh_str json, bh_error *error) {
    constexpr std::string_view key = "\"status\":";
    const std::string text(bh::view(json));
    const auto at = text.find(key);
    if (at == std::string::npos) return BH_OK;
    const int status = std::atoi(text.c_str() + at + key.size());
    return bh::fail(error, status, "the test refuses this configuration");
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<RefusingPolicy>() : nullptr;
  }

  std::uint32_t needs() const noexcept { return BH_POLICY_DECIDES; }
  bh_status decide(const bh_policy_request &, bh_verdict *out, bh_error *) {
    out->verdict = BH_VERDICT_ALLOW;
    return BH_OK;
  }
  bh_status observe(const bh_policy_request &, bh_str, bh_verdict *out, bh_error *) {
    out->verdict = BH_VERDICT_ALLOW;
    return BH_OK;
  }
  bh_status filter(const bh_policy_request &, bh_error *) { return BH_OK; }
};

}  // namespace

BH_PLUGIN(RefusingPolicy)
