// The server stub of a policy's link: questions of the client stub become calls of the plugin, and
// what it says, at once or later, becomes frames.
//
// Owner: the compartment. Thread: the reactor's.
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
  // `limits` and `plugin` outlive this.
  PolicyServerStub(Reactor &reactor, const bh_limits &limits, const ServedPlugin &plugin);
  ~PolicyServerStub();
  PolicyServerStub(const PolicyServerStub &) = delete;
  PolicyServerStub &operator=(const PolicyServerStub &) = delete;

  // The client stub is there (again); what the one before has asked is forgotten. `on_lost` is
  // called once if this trunk ends before another takes its place.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);

  // What the plugin calls through its host table; `number` as in its request. Never from inside a
  // function of the plugin.
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
  void say(FrameKind kind, std::uint64_t exchange, std::uint32_t code = 0,
           std::string_view payload = {});
  void send_verdict(std::uint64_t exchange, std::uint32_t verdict, const VerdictText &text,
                    std::string_view rewritten);

  Reactor &reactor_;
  const bh_limits &limits_;
  const ServedPlugin &plugin_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::function<void()> on_lost_;
  // A restarted endpoint uses its numbers again: an answer to the one before must not be taken for
  // an answer to this one. So the plugin sees them with the number of the link.
  std::uint64_t link_ = 0;
  std::unordered_map<std::uint64_t, bool> open_;  // the plugin answers later; true: filter
};

}  // namespace bulkhead::link
