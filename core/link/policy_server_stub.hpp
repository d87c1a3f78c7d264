// The server stub of a policy link: converts the client stub's requests to plugin calls, and
// converts immediate and delayed verdicts to frames.
//
// Owner: the compartment. Runs on the reactor thread.
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

  // Connects a started or restarted client stub. Requests from the previous client stub are
  // discarded. `on_lost` is called once if this trunk ends before it is replaced.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);

  // Functions of the plugin's host table; `number` identifies the request. They must not be called
  // from inside a plugin function.
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
  std::function<void()> on_lost_;
  // The link's number, which is part of the request numbers that the plugin receives. A restarted
  // endpoint reuses its numbers, so without the link number an answer for the previous endpoint
  // could match a request of the current endpoint.
  std::uint64_t link_ = 0;
  std::unordered_map<std::uint64_t, bool> open_;  // the plugin's pending answers; true: filter
};

}  // namespace bulkhead::link
