// The server stub of a policy link: calls the plugin for each request from the client stub, and
// sends the plugin's immediate and asynchronous verdicts back.
//
// If another process replaces this one, the client stub requests the plugin's state (bh.state/1).
// From then on, the stub holds all verdicts. If the other process is put into use, the requests to
// which these verdicts belong are returned, since the state that was exported does not contain
// them. Otherwise, the verdicts are sent.
//
// Owned by the compartment. All functions must be called on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/log_limit.hpp"
#include "bulkhead/abi/ext/policy.h"
#include "link/channel.hpp"
#include "link/frames.hpp"
#include "link/server_stub.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {

class PolicyServerStub {
 public:
  // `limits` and `plugin` must outlive this object.
  PolicyServerStub(Reactor &reactor, const bh_limits &limits, const ServedPlugin &plugin);
  ~PolicyServerStub();
  PolicyServerStub(const PolicyServerStub &) = delete;
  PolicyServerStub &operator=(const PolicyServerStub &) = delete;

  // Connects to a new client stub. Requests from the previous client stub are discarded. `on_lost`
  // is called once if the trunk is closed before it is replaced.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);

  // Returns true if the client stub sends no more requests (policy_end, or the trunk is closed) and
  // all answers have been written.
  bool drained() const noexcept {
    return trunk_ == nullptr || !trunk_->open() ||
           (ended_ && open_.empty() && trunk_->queued() == 0);
  }

  // Called through the plugin's host table. `number` identifies the request. Must not be called
  // inside a plugin function.
  void decided(std::uint64_t number, std::uint32_t verdict, const VerdictText &text,
               std::string_view rewritten);
  void filtered(std::uint64_t number, bool listed);
  void changed();

 private:
  struct Receiver;
  struct Verdict {
    std::uint32_t kind = 0;
    VerdictText text;
    std::string rewritten;
  };
  // A request that the plugin has not decided yet, or whose verdict is held.
  struct Open {
    FrameKind kind = FrameKind::policy_decide;
    // The frame's value and payload. Empty if the plugin has no state, and for policy_filter.
    std::uint64_t head_bytes = 0;
    std::string payload;
    std::optional<Verdict> held;
  };

  void on_frame(const Frame &frame, std::string_view payload);
  void on_request(const Frame &frame, std::string_view payload);
  void ask(const Frame &frame, const bh_policy_request &request, std::string_view text,
           std::string_view payload);
  void export_state(std::uint64_t number);
  void import_state(std::uint64_t number, std::string_view payload);
  void return_requests();
  void send_held();
  bool is_open(std::uint64_t number, bool filter) const;
  void log_failure(const bh_policy_request &request, std::string_view why);
  std::uint64_t plugin_number(std::uint64_t exchange) const noexcept;
  void send(FrameKind kind, std::uint64_t exchange, std::uint32_t code = 0,
            std::string_view payload = {});
  void send_verdict(std::uint64_t exchange, std::uint32_t verdict, const VerdictText &text,
                    std::string_view rewritten);

  Reactor &reactor_;
  const bh_limits &limits_;
  const ServedPlugin &plugin_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  bool ended_ = false;  // policy_end was received
  std::function<void()> on_lost_;
  // The link's number, which is part of the request numbers that the plugin sees. Without it, a
  // decision for the previous endpoint could be used for the current one, because a restarted
  // endpoint reuses request numbers.
  std::uint64_t link_ = 0;
  std::unordered_map<std::uint64_t, Open> open_;  // by the number that the plugin sees
  std::uint64_t exporting_ = 0;  // the number of the policy_export that is being answered
  bool exported_ = false;        // verdicts are held until it is known whether the state is used
  LogLimit filter_failures_;
};

}  // namespace bulkhead::link
