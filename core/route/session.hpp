// A client's conversation, as the router keeps it. Owner: the Router. Thread: [io].
#pragma once

#include <cstdint>
#include <map>
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

// Where a session's messages go: a transport plugin, or a client inside the program.
class ClientEnd {
 public:
  virtual ~ClientEnd() = default;
  virtual void send(const bh_outgoing &message) = 0;
  virtual void session_ended(bh_session session, std::string_view reason) = 0;
};

struct Session {
  bh_session handle = 0;
  ClientEnd *end = nullptr;

  // The peer, as the transport reported it.
  std::string transport, address, principal, process_name;
  // clientInfo.name of initialize, at most max_claimed_name bytes. Nothing verifies it.
  static constexpr std::size_t max_claimed_name = 128;
  std::string claimed_name;
  std::string trace_id;  // 32 hex digits, for records of what names no trace; empty: no telemetry

  bool handshake_optional = false;      // may skip initialize, and repeat it
  std::uint64_t max_message_bytes = 0;  // that its transport can carry; 0: no bound
  bool answers_only = false;            // is sent no events and no asks
  bool initialized = false;
  bool ready = false;  // its client has sent notifications/initialized, here or to a former process
  bool input_ended = false;
  bool closing = false;
  std::uint8_t revision = 0;
  ClientCaps caps = 0;
  int log_level = -1;          // -1: never set
  std::uint64_t start_ns = 0;  // in this process
  std::uint64_t calls = 0;     // that went to an upstream, or would have
  std::uint8_t listed = 0;     // bit per ItemKind: the client has seen that list
  View *view = nullptr;        // set by initialize

  // One that stands for a single sessionless message ends with its answer.
  enum class Sessionless : std::uint8_t { no, in_delivery, begins_session, waits };
  Sessionless sessionless = Sessionless::no;
  std::uint64_t stream = 0;  // of that message
  bool is_sessionless() const noexcept { return sessionless != Sessionless::no; }

  SessionCalls open_calls;
  std::uint32_t open_asks = 0;
  std::size_t batched_bytes = 0;  // of answers that wait in its batches for others

  struct Subscription {
    Lane *lane = nullptr;
    std::string original;  // the upstream's URI, unescaped
  };
  std::map<std::string, Subscription> subscriptions;  // by the client's URI token

  // What a next process is to know of it; see Ledger.
  Ledger::Slot slot = Ledger::none;
  std::string resume_id;  // the transport's
  SealTime sealed;        // that id
  // Of one that goes on: what it had in its last process and has not here yet.
  std::vector<std::string> to_subscribe;  // URI tokens
  bool to_tell_lists = false;             // that they may have changed
};

}  // namespace bulkhead
