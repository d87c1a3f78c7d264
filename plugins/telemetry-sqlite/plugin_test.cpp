#include <catch2/catch.hpp>

#include <bulkhead/abi/ext/draft/sign.h>
#include <bulkhead/abi/ext/telemetry.h>
#include <bulkhead/abi/plugin.h>
#include <bulkhead/cpp/host.hpp>
#include <bulkhead/testing/fake_host.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include "telemetry-sqlite/testing.hpp"

extern "C" const bh_entry *bh_static_entry_TelemetrySqlite(void);

using telemetry_sqlite::testing::one;

namespace {

struct Made {
  bh::testing::FakeHost host;
  const bh_plugin *plugin = nullptr;
  bh_error error = bh::make_error();

  Made() {
    const bh_entry *entry = bh_static_entry_TelemetrySqlite();
    REQUIRE(entry->create("telemetry-sqlite", host.host(), &plugin, &error) == BH_OK);
  }
  ~Made() { plugin->destroy(plugin->self); }
  bh_status configure(std::string_view json) {
    return plugin->configure(plugin->self, bh::str(json), &error);
  }
  const bh_telemetry *table() {
    return static_cast<const bh_telemetry *>(plugin->get_ext(plugin->self, BH_EXT_TELEMETRY));
  }
  std::string file() {
    const bh::Host view(host.host());
    const auto *store = view.ext<bh_host_store>(BH_EXT_HOST_STORE);
    return std::string(bh::view(store->folder(view.ctx()))) + "/calls-1-000001.db";
  }
};

}  // namespace

TEST_CASE("records are written as rows") {
  Made m;
  REQUIRE(m.configure("{}") == BH_OK);
  REQUIRE(m.plugin->start(m.plugin->self, &m.error) == BH_OK);
  CHECK(m.table()->needs(m.plugin->self) == (BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS));
  bh_record record{};
  record.size = sizeof record;
  record.outcome = BH_OUTCOME_OK;
  record.number = 5;
  record.method = bh::str("initialize");
  record.request = bh::str("{}");
  record.trace_id = bh::str("4bf9");
  const bh_record *pointer = &record;
  CHECK(m.table()->batch(m.plugin->self, &pointer, 1) == 1);
  bh_record old = record;  // a record of an older host
  old.size = offsetof(bh_record, request_id);
  old.number = 6;
  pointer = &old;
  CHECK(m.table()->batch(m.plugin->self, &pointer, 1) == 1);
  m.plugin->stop(m.plugin->self);
  CHECK(one(m.file(), "SELECT server_name || method || trace_id FROM mcp_calls WHERE id = 1") ==
        "gatewayinitialize4bf9");
  CHECK(one(m.file(), "SELECT trace_id IS NULL FROM mcp_calls WHERE id = 2") == "1");
  CHECK(m.host.faults().empty());
}

TEST_CASE("strings above the record limit are truncated, and the chain is valid") {
  Made m;
  REQUIRE(m.configure("{}") == BH_OK);
  REQUIRE(m.plugin->start(m.plugin->self, &m.error) == BH_OK);
  std::string numbers = R"({"password":[1)";
  while (numbers.size() < (8u << 20)) numbers += ",1";
  std::string accents = "a";  // puts the limit into the middle of a character
  while (accents.size() < 300'000) accents += "\u00e9";
  bh_record record{};
  record.size = sizeof record;
  record.outcome = BH_OUTCOME_OK;
  record.number = 5;
  record.request = bh::str(numbers);
  record.response = record.method = record.name = bh::str(accents);
  bh_record event = record;
  event.kind = BH_RECORD_NET;
  event.number = 6;
  event.detail = bh::str(numbers);
  const bh_record *pointers[] = {&record, &event};
  CHECK(m.table()->batch(m.plugin->self, pointers, 2) == 2);
  m.plugin->stop(m.plugin->self);
  const std::string of = " FROM mcp_calls WHERE id = 1";
  CHECK(one(m.file(), "SELECT flags" + of) == "12");
  CHECK(one(m.file(),
            "SELECT length(CAST(request_preview AS BLOB)) BETWEEN 262144 AND 786432" + of) == "1");
  // The end of a truncated string is masked because it may be part of a credential.
  CHECK(one(m.file(),
            "SELECT length(CAST(response_preview AS BLOB)) BETWEEN 261000 AND 262144" + of) == "1");
  CHECK(one(m.file(), "SELECT length(CAST(method AS BLOB))" + of) == "1023");
  CHECK(one(m.file(), "SELECT group_concat(kind) FROM audit_marks") == "start,unreadable,end");
  const record_store::VerifyOptions options;
  CHECK(record_store::verify_chain({{m.file(), 1, 1, 0, 0}}, options).broken == "");
}

TEST_CASE("the configuration determines the requirements declared to the host") {
  Made m;
  REQUIRE(m.configure(R"({"texts":false,"on_failure":"block"})") == BH_OK);
  CHECK(m.table()->needs(m.plugin->self) == (BH_TELEMETRY_BLOCKS | BH_TELEMETRY_EVENTS));
  Made other;
  REQUIRE(other.configure(R"({"rejected_arguments":true})") == BH_OK);
  CHECK(other.table()->needs(other.plugin->self) ==
        (BH_TELEMETRY_TEXTS | BH_TELEMETRY_REJECTED | BH_TELEMETRY_EVENTS));
}

TEST_CASE("an invalid configuration is rejected with a remedy") {
  Made m;
  // The fake host does not support mode "full".
  CHECK(m.configure(R"({"mode":"full"})") == BH_E_UNSUPPORTED);
  CHECK(bh::text(m.error).find("does not wait for records") != std::string::npos);
  CHECK(m.configure(R"({"mode":"full","on_failure":"spill"})") == BH_E_INVALID);
  CHECK(bh::text(m.error).find("remove on_failure") != std::string::npos);
  CHECK(m.configure(R"({"segment_bytes":2000000,"max_bytes":3000000})") == BH_E_INVALID);
  CHECK(bh::text(m.error).find("half of max_bytes") != std::string::npos);
  CHECK(m.configure(R"({"texts":false,"rejected_arguments":true})") == BH_E_INVALID);
  CHECK(bh::text(m.error).find("rejected_arguments = true requires texts = true") !=
        std::string::npos);
}

TEST_CASE("full: the host is notified when records have been committed") {
  Made m;
  static std::atomic<std::uint64_t> below;
  below = 0;
  static constexpr bh_host_telemetry table{sizeof(bh_host_telemetry), 0,
                                           [](void *, std::uint64_t number) { below = number; }};
  m.host.add_ext(BH_EXT_HOST_TELEMETRY, &table);
  REQUIRE(m.configure(R"({"mode":"full"})") == BH_OK);
  CHECK(m.table()->needs(m.plugin->self) ==
        (BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_BLOCKS | BH_TELEMETRY_COMMITS));
  REQUIRE(m.plugin->start(m.plugin->self, &m.error) == BH_OK);
  bh_record record{};
  record.size = sizeof record;
  record.number = 41;
  record.kind = BH_RECORD_INTENT;
  record.method = bh::str("tools/call");
  const bh_record *pointer = &record;
  CHECK(m.table()->batch(m.plugin->self, &pointer, 1) == 1);
  for (int i = 0; i < 10'000 && below == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  CHECK(below == 42);
  CHECK(one(m.file(), "SELECT count(*) FROM call_intents") == "1");
  m.plugin->stop(m.plugin->self);
}
