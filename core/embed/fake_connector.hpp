// A connector that is linked into the test and simulates upstream servers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/plugin.h"

struct FakeLane {
  bh_lane handle = 0;
  std::string server;
  bool open = true;
  std::vector<std::string> sent;  // all messages, in order
  std::vector<std::uint64_t> abandoned;
};

// The fake connector's state, read and set by the test. Only one instance may exist at a time.
struct FakeUpstreams {
  static FakeUpstreams &get();

  std::vector<FakeLane> lanes;
  // Tools by server. tools/list fails for servers that are not in this map.
  std::map<std::string, std::string> tools;
  std::map<std::string, std::string> capabilities;  // default {"tools":{}}
  std::map<std::string, std::string> cursor;        // nextCursor of each tools page, by server
  bool answer_initialize = true;
  bool hold_tools = false;  // the test itself answers tools/list
  bool refuse_open = false;
  std::string refused_server;  // opening a lane to this server fails
  // Called when a lane becomes ready or is abandoned; may send messages to the gateway.
  std::function<void(bh_lane)> on_ready, on_abandon;

  FakeLane &lane(std::string_view server);  // the server's newest lane
  std::string last(std::string_view server) { return lane(server).sent.back(); }
  // Returns the id token of a message that the gateway sent.
  static std::string id_of(const std::string &message);
  // Sends a message from the server to the gateway.
  void send(std::string_view server, const std::string &message, std::uint64_t exchange = 0);
  void fall(std::string_view server, const std::string &reason);
  // Same as send() and fall(), for one lane.
  void send_on(bh_lane lane, const std::string &message);
  void lane_down(bh_lane lane, const bh_error &error);

  const bh_host *host = nullptr;
  // An answer in transit to the gateway, kept until the next test.
  struct Answer {
    bh_lane lane;
    std::string text;
  };
  std::deque<Answer> answers;
};

extern "C" const bh_entry *bh_static_entry_FakeConnector(void);
