// The host that a plugin sees during a check: the SDK's fake host, with the tables for all kinds of
// plugins. It records what the plugin does, and detects calls that are not allowed.
//
// One plugin instance for each TrialHost. [control] and [io] functions of the plugin are called on
// the thread that created it.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/abi/ext/transport.h"
#include "bulkhead/testing/fake_host.hpp"
#include "check/trial_listeners.hpp"

namespace bulkhead::check {

class TrialHost {
 public:
  TrialHost();
  TrialHost(const TrialHost &) = delete;
  TrialHost &operator=(const TrialHost &) = delete;

  const bh_host *table() const noexcept { return &table_; }
  bh::testing::FakeHost &base() noexcept { return base_; }

  // Between these calls, the plugin may use only log, log_enabled and get_ext.
  void forbid(std::string function);
  void allow();

  // Offers sockets to transports. They must outlive the host.
  void offer_listeners(const TrialListeners &listeners) noexcept { listeners_ = &listeners; }

  // Makes the host look like one of a later version: its struct and its tables are larger.
  void be_newer() noexcept;

  struct Completed {
    bh_call call = 0;
    std::uint32_t kind = 0;
    std::string json;
  };
  struct Decided {
    std::uint64_t exchange = 0;
    std::uint32_t verdict = 0, listed = 0;
    bool is_filter = false;
  };
  // What the plugin has reported. Tools and policies may report on any thread.
  std::vector<Completed> completed() const;
  std::size_t completions(bh_call call) const;  // of one call
  std::vector<Decided> decided() const;
  std::vector<std::uint64_t> committed() const;
  std::size_t attempts() const;  // calls of complete(), with any result
  std::vector<std::string> faults() const;

  bh_status completion = BH_OK;  // what complete() returns
  std::vector<bh_lane> lanes_down, lanes_closed;
  std::size_t lane_messages = 0, failed_exchanges = 0;

 private:
  static TrialHost &of(void *ctx) noexcept {
    return *static_cast<TrialHost *>(bh::testing::FakeHost::self(ctx).user);
  }
  void used(const char *function);
  void fault(std::string text);
  bh_status complete(bh_call call, const bh_result *result);
  void make_guards();
  void make_tools();
  void make_policy();
  void make_telemetry();
  void make_connector();
  void make_transport();
  void make_http();
  void make_listen();
  bh_status open_listener(const void *address, std::uint32_t size, std::int32_t *fd,
                          bh_error *error);

  bh::testing::FakeHost base_;
  struct LargerHost {
    bh_host host;
    std::uint64_t later[8];
  } larger_{};
  bh_host &table_ = larger_.host;
  bh_limits limits_;
  const bh_host_executor *real_executor_ = nullptr;
  const bh_host_fd *real_fd_ = nullptr;
  bh_host_executor executor_{};
  bh_host_fd fd_{};
  bh_host_tools tools_{};
  bh_host_event event_{};
  bh_host_policy policy_{};
  bh_host_telemetry telemetry_{};
  bh_host_connector connector_{};
  bh_host_transport transport_{};
  bh_host_http http_{};
  bh_host_listen listen_{};
  const TrialListeners *listeners_ = nullptr;

  mutable std::mutex mutex_;  // guards the following members
  std::string forbidden_;
  std::vector<std::string> faults_;
  std::vector<Completed> completed_;
  std::vector<Decided> decided_;
  std::vector<std::uint64_t> committed_;
  std::size_t attempts_ = 0;
};

}  // namespace bulkhead::check
