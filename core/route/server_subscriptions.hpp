// Reports changes at a server without sessions to the lane, using subscriptions/listen in place of
// resources/subscribe.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "route/conversation.hpp"
#include "route/lane.hpp"
#include "route/lane_wire.hpp"
#include "route/listening.hpp"
#include "route/server_lists.hpp"

namespace bulkhead {

class ServerSubscriptions final : private Listening::Wire {
 public:
  ServerSubscriptions(Lane &lane, LaneHost &host, Conversation &conversation, LaneWire &wire,
                      ServerLists &lists)
      : lane_(lane),
        host_(host),
        conversation_(conversation),
        wire_(wire),
        lists_(lists),
        listening_(host.reactor(), *this) {}

  Listening &listening() noexcept { return listening_; }
  const Listening &listening() const noexcept { return listening_; }
  // See Lane::reports().
  bool reports(const Lane::Watch &watch) const {
    return watch.on &&
           (conversation_.takes(mcp::Method::resources_subscribe) || listening_.is_open());
  }
  // Handles a client's resources/subscribe or resources/unsubscribe request for a server that does
  // not have these methods. No message is sent to the server for this request alone, so it does not
  // count as in flight.
  void take(Exchange &exchange);

  // ---- from the server ----
  // Called when the server has acknowledged subscriptions/listen.
  void acknowledged(const Message &message);
  // Called when the server has sent notifications/cancelled. A stdio server ends
  // subscriptions/listen in this way. Returns false if the notification is about another request.
  bool cancelled(const Message &message);
  // Called when the subscriptions/listen request has ended. If it ended without a response, `scan`
  // is null and `failure` is set.
  void answered(std::uint64_t exchange, const mcp::Scan *scan, std::string_view message,
                const Error *failure);

 private:
  void answer(std::uint64_t exchange, bool accepted, std::string_view failure);
  void answer_all(std::uint64_t listen, std::string_view failure);
  // Listening::Wire
  std::vector<std::string> watched() const override;
  bool send_listen(const std::string &filter, std::uint64_t *exchange) override;
  void end_listen(std::uint64_t exchange) override;
  void changes_missed(bool interrupted) override;
  void accepted(std::uint64_t exchange, std::string_view uris) override;
  void rejected(std::uint64_t exchange, std::string_view reason) override;

  Lane &lane_;
  LaneHost &host_;
  Conversation &conversation_;
  LaneWire &wire_;
  ServerLists &lists_;
  Listening listening_;
};

}  // namespace bulkhead
