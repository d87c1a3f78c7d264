// The server stub of a policy link: calls the plugin for each request from the client stub, and
// sends the plugin's immediate and asynchronous verdicts back.
//
// Owned by the compartment. All functions must be called on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

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

  void on_frame(const Frame &frame, std::string_view payload);
  void ask(const Frame &frame, const bh_policy_request &request, std::string_view text);
  bool take_open(std::uint64_t number, bool filter);
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
  // requests that the plugin has not decided yet; the value is true for a filter request
  std::unordered_map<std::uint64_t, bool> open_;
};

}  // namespace bulkhead::link
