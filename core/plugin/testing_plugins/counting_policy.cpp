// A policy that allows `most` calls and offers its count as its state (bh.state/1).
// COUNTING_VERSION is the build of the plugin, and names what does not work: "export-fails",
// "export-slow", "export-large", "export-crashes", "import-fails", "import-slow" or
// "import-crashes". Version "stateless" does not offer its state.
#include <unistd.h>

#include <bulkhead/cpp/host.hpp>
#include <bulkhead/cpp/plugin.hpp>
#include <bulkhead/cpp/tables.hpp>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

constexpr std::string_view version = COUNTING_VERSION;
constexpr std::string_view schema = "bulkhead.tests.count";

// Longer than all attempts to move the state.
void wait_too_long() {
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
}

std::uint64_t number_after(std::string_view text, std::string_view name, std::uint64_t otherwise) {
  const std::size_t at = text.find(name);
  if (at == std::string_view::npos) return otherwise;
  std::uint64_t number = 0;
  std::from_chars(text.data() + at + name.size(), text.data() + text.size(), number);
  return number;
}

class CountingPolicy {
 public:
  static constexpr bh::Info info{
      .id = PLUGIN_ID,
      .name = "Counting policy",
      .version = COUNTING_VERSION,
      .vendor = "Bulkhead",
      .config_schema = {},
      .provides = {BH_EXT_POLICY, version == "stateless" ? nullptr : BH_EXT_STATE}};

  explicit CountingPolicy(const bh_host *) {}

  bh_status configure(bh_str json, bh_error *) {
    most_ = number_after(bh::view(json), "\"most\":", 1'000);
    return BH_OK;
  }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *id) noexcept {
    if (bh::is(id, BH_EXT_STATE) && version != "stateless")
      return bh::state_table<CountingPolicy>();
    return bh::is(id, BH_EXT_POLICY) ? bh::policy_table<CountingPolicy>() : nullptr;
  }

  std::uint32_t needs() const noexcept { return BH_POLICY_DECIDES; }
  bh_status decide(const bh_policy_request &, bh_verdict *out, bh_error *) {
    const bool allows = used_ < most_;
    if (allows) ++used_;
    reason_ = std::to_string(used_) + " calls, decided by " COUNTING_VERSION;
    out->verdict = allows ? BH_VERDICT_ALLOW : BH_VERDICT_BLOCK;
    out->rule = bh::str("count");
    out->reason = bh::str(reason_);
    return BH_OK;
  }

  bh_status export_state(bh_state_blob *out, bh_error *error) {
    if (version == "export-fails") return bh::fail(error, BH_E_INTERNAL, "the count is unreadable");
    if (version == "export-crashes") ::_exit(1);
    if (version == "export-slow") wait_too_long();
    state_ = std::to_string(used_);
    if (version == "export-large") state_.append(std::size_t{BH_STATE_BYTES}, ' ');
    out->version = 1;
    out->schema = bh::str(schema);
    out->bytes = bh::str(state_);
    return BH_OK;
  }
  bh_status import_state(const bh_state_blob &blob, bh_error *error) {
    if (version == "import-fails" || bh::view(blob.schema) != schema)
      return bh::fail(error, BH_E_INVALID, "no such count is known here");
    if (version == "import-crashes") std::abort();
    if (version == "import-slow") wait_too_long();
    used_ = number_after(bh::view(blob.bytes), "", 0);
    return BH_OK;
  }

 private:
  std::uint64_t most_ = 0, used_ = 0;
  std::string reason_, state_;
};

}  // namespace

BH_PLUGIN(CountingPolicy)
