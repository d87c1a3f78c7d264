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

// clientInfo.name of initialize, which is not verified. Records share the string, so a call does
// not copy it. Null if absent.
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
  // 32 hex digits, for records without their own trace. Empty if there is no telemetry.
  std::string trace_id;

  bool handshake_optional = false;      // the client may omit or repeat initialize
  std::uint64_t max_message_bytes = 0;  // limit of its transport, or 0
  bool answers_only = false;            // receives no events and no asks
  bool initialized = false;
  // notifications/initialized was received, by this process or an earlier one; for a sessionless
  // request: its subscriptions/listen was acknowledged.
  bool ready = false;
  bool input_ended = false;
  bool closing = false;
  std::uint8_t revision = 0;
  ClientCaps caps = 0;
  int log_level = -1;          // -1: never set
  std::uint64_t start_ns = 0;  // in this process
  std::uint64_t calls = 0;     // requests to servers, including refused ones
  std::uint8_t listed = 0;     // bit per ItemKind: the client has received the list
  View *view = nullptr;        // set by initialize

  // The session of a single sessionless message ends with the answer.
  enum class Sessionless : std::uint8_t { no, in_delivery, begins_session, waits };
  Sessionless sessionless = Sessionless::no;
  std::uint64_t stream = 0;  // of the sessionless message
  // The client is asked through results, and answers by repeating its request; see ClientInputs.
  bool repeats_requests = false;
  bool parked = false;  // the client has been asked, and none of its requests waits
  bool is_sessionless() const noexcept { return sessionless != Sessionless::no; }
  // If the message arrived in a session of the transport: that session.
  bh_session connection = 0;
  std::string request_id;  // its id token; set if there is a connection, or it listens
  // For a sessionless message: the key of its own view, if a server runs per client; see Views.
  std::uint64_t scope = 0;
  // The sessions of the sessionless requests that arrived in this session and have no answer yet.
  std::vector<bh_session> requests;

  // The session as the transport knows it.
  bh_session at_transport() const noexcept { return is_sessionless() ? connection : handle; }

  SessionCalls open_calls;
  std::uint32_t open_asks = 0;
  std::size_t batched_bytes = 0;  // answers that wait in incomplete batches

  struct Subscription {
    Lane *lane = nullptr;
    std::string original;  // the server's URI, unescaped
  };
  std::map<std::string, Subscription> subscriptions;  // keyed by the client's URI token

  // The slot of the session in the Ledger.
  Ledger::Slot slot = Ledger::none;
  std::string resume_id;  // the transport's id
  SealTime sealed;        // when resume_id was sealed
  // For a restored session: the state that must still be restored.
  std::vector<std::string> to_subscribe;  // URI tokens
  bool to_tell_lists = false;             // notify the client that lists may have changed
};

}  // namespace bulkhead
