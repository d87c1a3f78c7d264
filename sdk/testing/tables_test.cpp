// Tests that no table function lets an exception from the plugin's class cross the ABI.
#include <bulkhead/cpp/tables.hpp>
#include <bulkhead/cpp/tools.hpp>
#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>
#include <stdexcept>

namespace {

[[noreturn]] void thrown() {
  throw std::runtime_error("thrown by the plugin");
}

// A class whose member functions all throw exceptions.
class Thrower {
 public:
  static constexpr bh::Info info{.id = "thrower",
                                 .name = "Thrower",
                                 .version = "1",
                                 .vendor = "test",
                                 .config_schema = {},
                                 .provides = {BH_EXT_POLICY, BH_EXT_TELEMETRY}};
  explicit Thrower(const bh_host *) {}
  bh_status configure(bh_str, bh_error *) { thrown(); }
  bh_status start(bh_error *) { thrown(); }
  bh_status probe(bh_error *) { thrown(); }
  void drain(std::uint64_t) { thrown(); }
  void stop() { thrown(); }
  const void *get_ext(const char *) { thrown(); }

  std::uint32_t needs() const { thrown(); }
  bh_status decide(const bh_policy_request &, bh_verdict *, bh_error *) { thrown(); }
  bh_status observe(const bh_policy_request &, bh_str, bh_verdict *, bh_error *) { thrown(); }
  bh_status filter(const bh_policy_request &, bh_error *) { thrown(); }
  bh_status reconfigure(bh_str, bh_error *) { thrown(); }
  std::uint32_t batch(const bh_record *const *, std::uint32_t) { thrown(); }
  bh_status export_state(bh_state_blob *, bh_error *) { thrown(); }
  bh_status import_state(const bh_state_blob &, bh_error *) { thrown(); }

  bh_status listen(bh_error *) { thrown(); }
  void stop_accepting() { thrown(); }
  bh_status send(const bh_outgoing &) { thrown(); }
  void session_ended(bh_session, bh_str) { thrown(); }
  bh_str endpoint() { thrown(); }

  bh_status lane_open(bh_lane, const bh_lane_info &, void **, bh_error *) { thrown(); }
  bh_status lane_send(void *, const bh_lane_message &, bh_error *) { thrown(); }
  void lane_ready(void *, bh_str) { thrown(); }
  void lane_abandon(void *, std::uint64_t) { thrown(); }
  void lane_close(void *) { thrown(); }

  bh_status list(const bh_list_info &, bh_buf *, bh_error *) { thrown(); }
  bh_status call_begin(bh_call, const bh_call_info &, bh_error *) { thrown(); }
  void call_cancel(bh_call, const bh_cancel &) { thrown(); }
};

class DecidesOnly {
 public:
  static constexpr bh::Info info{.id = "decides-only",
                                 .name = "Decides only",
                                 .version = "1",
                                 .vendor = "Bulkhead",
                                 .config_schema = {},
                                 .provides = {BH_EXT_POLICY}};
  explicit DecidesOnly(const bh_host *) {}
  bh_status configure(bh_str, bh_error *) { return BH_OK; }
  bh_status start(bh_error *) { return BH_OK; }
  void stop() noexcept {}
  const void *get_ext(const char *) noexcept { return bh::policy_table<DecidesOnly>(); }

  std::uint32_t needs() const noexcept { return BH_POLICY_DECIDES; }
  bh_status decide(const bh_policy_request &, bh_verdict *, bh_error *) { return BH_OK; }
};

template <class P>
struct MadeOf {
  MadeOf() {
    const bh_entry *entry = bh::detail::Entry<P>::entry();
    REQUIRE(entry->create(P::info.id, fake.host(), &plugin, nullptr) == BH_OK);
  }
  ~MadeOf() { plugin->destroy(plugin->self); }
  bh::testing::FakeHost fake;
  const bh_plugin *plugin = nullptr;
};
using Made = MadeOf<Thrower>;

}  // namespace

TEST_CASE("exceptions of bh_plugin functions are caught") {
  const Made made;
  const bh_plugin &p = *made.plugin;
  bh_error error = bh::make_error();
  CHECK(p.configure(p.self, {}, &error) == BH_E_INTERNAL);
  CHECK(bh::text(error) == "thrown by the plugin");
  CHECK(p.start(p.self, &error) == BH_E_INTERNAL);
  CHECK(p.probe(p.self, &error) == BH_E_INTERNAL);
  p.drain(p.self, 0);
  p.stop(p.self);
  CHECK(p.get_ext(p.self, BH_EXT_POLICY) == nullptr);
}

TEST_CASE("exceptions of policy and telemetry functions are caught") {
  const Made made;
  void *self = made.plugin->self;
  const bh_policy &policy = *bh::policy_table<Thrower>();
  const bh_policy_request request{};
  bh_verdict verdict{};
  bh_error error = bh::make_error();
  // If needs() throws, the policy receives all messages, and the functions that judge them return
  // errors.
  CHECK((policy.needs(self) & BH_POLICY_DECIDES) != 0);
  CHECK(policy.decide(self, &request, &verdict, &error) == BH_E_INTERNAL);
  CHECK(policy.observe(self, &request, {}, &verdict, &error) == BH_E_INTERNAL);
  CHECK(policy.filter(self, &request, &error) == BH_E_INTERNAL);
  CHECK(policy.reconfigure(self, {}, &error) == BH_E_INTERNAL);
  const bh_telemetry &telemetry = *bh::telemetry_table<Thrower>();
  const bh_record record{};
  const bh_record *const records[] = {&record};
  CHECK(telemetry.batch(self, records, 1) == 0);  // no record was accepted, so they are sent again
  CHECK((telemetry.needs(self) & BH_TELEMETRY_BLOCKS) != 0);
}

TEST_CASE("results and items are rejected if a policy has no functions for them") {
  const MadeOf<DecidesOnly> made;
  void *self = made.plugin->self;
  const bh_policy &policy = *bh::policy_table<DecidesOnly>();
  const bh_policy_request request{};
  bh_verdict verdict{};
  bh_error error = bh::make_error();
  CHECK(policy.decide(self, &request, &verdict, &error) == BH_OK);
  CHECK(policy.observe(self, &request, {}, &verdict, &error) == BH_E_UNSUPPORTED);
  CHECK(bh::text(error) == "this policy evaluates no results");
  CHECK(policy.filter(self, &request, &error) == BH_E_UNSUPPORTED);
  CHECK(policy.reconfigure == nullptr);
}

TEST_CASE("exceptions of transport, connector and tools functions are caught") {
  const Made made;
  void *self = made.plugin->self;
  bh_error error = bh::make_error();
  const bh_transport &transport = *bh::transport_table<Thrower>();
  CHECK(transport.listen(self, &error) == BH_E_INTERNAL);
  transport.stop_accepting(self);
  transport.session_ended(self, 0, {});
  CHECK(transport.endpoint(self).n == 0);
  const bh_connector &connector = *bh::connector_table<Thrower>();
  connector.lane_ready(self, nullptr, {});
  connector.lane_abandon(self, nullptr, 0);
  connector.lane_close(self, nullptr);
  const bh_cancel cancel = bh::cancellation(BH_CANCEL_CLIENT);
  bh::tools_table<Thrower>()->call_cancel(self, 0, &cancel);
}
