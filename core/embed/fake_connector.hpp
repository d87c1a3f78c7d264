// Implements a connector plugin that is linked into the test and simulates upstream servers.
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
  std::vector<std::string> sent;  // all messages from the gateway, in order
  std::vector<std::uint64_t> abandoned;
};

// The state of the fake connector, which the test reads and sets. Only one instance of the plugin
// may exist at a time.
struct FakeUpstreams {
  static FakeUpstreams &get();

  std::vector<FakeLane> lanes;
  // The tools array that each server returns. tools/list fails for servers without an entry.
  std::map<std::string, std::string> tools;
  // Each server's capabilities; the default is {"tools":{}}.
  std::map<std::string, std::string> capabilities;
  // The nextCursor that a server adds to each tools/list result, by server.
  std::map<std::string, std::string> cursor;
  bool answer_initialize = true;
  bool hold_tools = false;  // if set, the test responds to tools/list itself
  bool refuse_open = false;
  std::string refused_server;  // opening a lane to this server fails
  // Called when a lane becomes ready or an exchange is abandoned. May send messages to the gateway.
  std::function<void(bh_lane)> on_ready, on_abandon;

  FakeLane &lane(std::string_view server);  // returns the server's newest lane
  std::string last(std::string_view server) { return lane(server).sent.back(); }
  // Returns the ID of a message from the gateway, as JSON text.
  static std::string id_of(const std::string &message);
  // Sends a message from the server to the gateway.
  void send(std::string_view server, const std::string &message, std::uint64_t exchange = 0);
  void fall(std::string_view server, const std::string &reason);
  // Like send() and fall(), but for a specific lane.
  void send_on(bh_lane lane, const std::string &message);
  void lane_down(bh_lane lane, const bh_error &error);

  const bh_host *host = nullptr;
  // A response on its way to the gateway. Responses are kept until the next test.
  struct Answer {
    bh_lane lane;
    std::string text;
  };
  std::deque<Answer> answers;
};

extern "C" const bh_entry *bh_static_entry_FakeConnector(void);
