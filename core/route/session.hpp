// The state of a client's session. Owner: Sessions. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/transport.h"
#include "route/call.hpp"
#include "route/client_load.hpp"
#include "route/ledger.hpp"
#include "route/protocol.hpp"
#include "route/reopening.hpp"

namespace bulkhead {

class Lane;
struct View;

// The receiver of a session's messages: a transport plugin, or a client inside the program.
class ClientEnd {
 public:
  virtual ~ClientEnd() = default;
  virtual void send(const bh_outgoing &message) = 0;
  virtual void session_ended(bh_session session, std::string_view reason) = 0;
};

// The clientInfo.name from initialize or from a sessionless request, which is not verified. Null if
// absent. Records share the string, so it is not copied for each call.
using ClaimedName = std::shared_ptr<const std::string>;
inline std::string_view text_of(const ClaimedName &name) noexcept {
  return name == nullptr ? std::string_view{} : std::string_view(*name);
}

struct Session {
  bh_session handle = 0;
  ClientEnd *end = nullptr;

  // The peer as reported by the transport.
  std::string transport, address, principal, process_name;
  static constexpr std::size_t max_claimed_name = 128;  // bytes; a longer name is truncated
  ClaimedName claimed_name;
  // The trace id (32 hexadecimal digits) for records of messages that have no trace id. Empty if
  // there is no telemetry.
  std::string trace_id;

  bool handshake_optional = false;      // the client may omit or repeat initialize
  std::uint64_t max_message_bytes = 0;  // limit of its transport, or 0
  bool answers_only = false;            // receives no events and no asks
  bool initialized = false;
  // True once notifications/initialized has been received. Restored sessions are always ready. For
  // a sessionless subscriptions/listen request, true once it has been acknowledged.
  bool ready = false;
  bool input_ended = false;
  bool closing = false;
  // True if this is the session of a request of MCP 2026-07-28, or if such a request has arrived in
  // this session before initialize.
  bool has_sessionless = false;
  std::uint8_t revision = 0;
  ClientCaps caps = 0;
  std::shared_ptr<const void> capability_set;  // keeps `caps` in use; see CapabilitySets
  int log_level = -1;                          // -1: never set
  std::uint64_t start_ns = 0;                  // in this process
  std::uint64_t calls = 0;                     // requests to servers, including refused ones
  std::uint8_t listed = 0;                     // bit per ItemKind: the client has received the list
  View *view = nullptr;                        // set by Views::join()

  // Whether this session was created for a single sessionless message. Such a session ends when the
  // message has been answered, or, if `handed_over` is set, when the parked call has ended.
  // `begins_session` means that the message is initialize, for which the transport must open a
  // session.
  enum class Sessionless : std::uint8_t { no, in_delivery, begins_session, waits };
  Sessionless sessionless = Sessionless::no;
  std::uint64_t stream = 0;  // of the sessionless message
  // True if the gateway asks the client for input in its results, and the client answers by
  // repeating its request; see ClientInputs.
  bool repeats_requests = false;
  bool parked = false;  // the client has been asked, and none of its requests waits
  // True if another session has taken over the request, because the call was parked.
  bool handed_over = false;
  bool is_sessionless() const noexcept { return sessionless != Sessionless::no; }
  // For a sessionless message: the transport's session in which it arrived, or 0 if there is none.
  bh_session connection = 0;
  // The request's id token. Set if `connection` is set or the request is subscriptions/listen.
  std::string request_id;
  // For a sessionless message: the key of the view to use if a server runs per client; see Views.
  std::uint64_t scope = 0;
  // The sessions of sessionless requests that arrived in this session and have not been answered
  // yet.
  std::vector<bh_session> requests;

  // Returns the revision that the client uses, or an empty string if the client has not stated one.
  std::string_view protocol() const noexcept {
    if (has_sessionless) return stateless_revision;
    return initialized ? revisions[revision] : std::string_view();
  }

  // Returns the number that identifies the client in rules, records and approvals: the handle of
  // its session or connection or, for sessionless requests without a connection, the number that
  // all requests from its peer have (ClientLoad::client).
  std::uint64_t client() const noexcept {
    const ClientLoad *shared = load.get();
    return shared != nullptr ? shared->client : handle;
  }
  // Returns the handle of the transport's session to which this session belongs, or 0 if there is
  // none.
  bh_session at_transport() const noexcept { return is_sessionless() ? connection : handle; }

  SessionCalls open_calls;
  std::shared_ptr<ClientLoad> load;    // set by Sessions::open(); may be shared with other sessions
  bool counted = false;                // in load->requests
  std::size_t batched_bytes = 0;       // answers that wait in incomplete batches
  std::vector<std::uint64_t> batches;  // incomplete; see ClientBatches
  std::vector<std::uint64_t> asks;     // open; see Asks

  struct Subscription {
    Lane *lane = nullptr;
    std::string original;  // the server's URI, unescaped
  };
  std::map<std::string, Subscription> subscriptions;  // keyed by the client's URI token

  Ledger::Slot slot = Ledger::none;
  std::string resume_id;  // the transport's id
  SealTime sealed;        // when resume_id was sealed
  // For a restored session: the state that must still be restored.
  std::vector<std::string> to_subscribe;  // URI tokens
  bool to_tell_lists = false;             // notify the client that lists may have changed
};

}  // namespace bulkhead
