// Implements a policy plugin and a telemetry plugin that are linked into the test. The test makes
// the policy's decisions and reads the records.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/plugin.h"

// The state of the fake plugins, which the test reads and sets. Only one instance of each plugin
// may exist at a time.
struct FakeJudge {
  static FakeJudge &get();

  struct Asked {
    std::string look;  // "decide", "observe" or "filter"
    std::uint64_t number;
    std::string server, name, text;  // `text` is the arguments or the result
    std::uint32_t flags = 0, event = 0;
    std::string method;
  };
  // Makes the policy's decisions. Returns the status and may set the verdict. The verdict's strings
  // must outlive the call.
  std::function<bh_status(const Asked &, bh_verdict *)> judge;
  std::uint32_t needs = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
  std::vector<Asked> asked;
  const Asked &last() const { return asked.back(); }

  bh_status decided(std::uint64_t number, std::uint32_t verdict, std::string_view rewrite = {},
                    std::string_view rule = "r1");
  bh_status filtered(std::uint64_t number, bool listed);
  void changed();

  struct Kept {
    std::uint32_t outcome;
    std::string server, name, rule, error;
    std::string method, request_id, request, response, reason, trace_id;
    std::uint64_t params_bytes, result_bytes, number;
    std::uint32_t action, flags, kind;
    std::uint64_t intent;
    std::string detail, claimed_name;
  };
  std::vector<Kept> records;
  std::uint32_t telemetry_needs = BH_TELEMETRY_TEXTS;
  bool takes = true;  // whether the telemetry plugin accepts records
  // Reports that all records received so far have been committed.
  void commit() const;

  const bh_host *host = nullptr, *telemetry_host = nullptr;
};

extern "C" const bh_entry *bh_static_entry_FakePolicy(void);
extern "C" const bh_entry *bh_static_entry_FakeTelemetry(void);
