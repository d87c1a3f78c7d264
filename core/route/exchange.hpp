// An exchange: one request to a server. Its JSON-RPC id is a number that the gateway assigns. If
// the client wants progress, the server also receives this number as the progress token.
//
// An exchange belongs to a call or to its lane (handshake, list, subscription for several clients).
// A call that is submitted again, for example because the rules changed while it was queued, gets a
// new exchange.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <string>

#include "mcp/scan.hpp"
#include "route/numbered_table.hpp"

namespace bulkhead {

struct Call;
class Lane;

enum class Purpose : std::uint8_t {
  call,       // a client waits for the answer: Exchange::call
  handshake,  // the lane's opening request
  list,       // the lane's own listing of Exchange::list_kind
  listen,     // subscriptions/listen, which stays open
  // Subscribe, setLevel, tasks/cancel: not for one client, and the answer is discarded. Also
  // server/discover, if the lane checks again whether the server belongs to another generation.
  quiet
};

struct Exchange : Numbered<Exchange> {
  Purpose purpose = Purpose::call;
  mcp::Method method = mcp::Method::none;
  std::uint8_t list_kind = 0;
  bool sent = false;        // passed to the connector or tools plugin; may have been executed
  bool takes_place = true;  // counted in Lane::in_flight once it has been sent
  bool local = false;       // the lane responds itself; the server does not receive the request
  Call *call = nullptr;     // set if and only if purpose is call
  Lane *lane = nullptr;     // set until the lane has released it
  std::string name;         // for a lane's own request: the URI, if any, for error messages
  std::uint64_t start_ns = 0;

  Exchange *lane_prev = nullptr, *lane_next = nullptr;

  void clear() {
    purpose = Purpose::call;
    method = mcp::Method::none;
    sent = false;
    takes_place = true;
    local = false;
    call = nullptr;
    lane = nullptr;
    name.clear();
  }
};

using LaneExchanges = IntrusiveList<Exchange, &Exchange::lane_prev, &Exchange::lane_next>;
using ExchangeTable = NumberedTable<Exchange>;

}  // namespace bulkhead
