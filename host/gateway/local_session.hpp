// An MCP client inside this program, for commands that send a few requests and exit.
//
// Used on one thread, with one request at a time. A call returns when the response arrives, the
// request times out, the connection is lost, or a signal requests a stop.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"
#include "shared/session_wire.hpp"

namespace bulkhead::program {

class LocalSession {
 public:
  struct Failure {
    std::string text;        // one line for the user
    std::string error_json;  // the server's error object; empty if it sent none
  };
  // clientInfo.name of this client.
  static constexpr std::string_view client_name = "bulkhead-cli";
  using Answer = std::expected<std::string, Failure>;  // the JSON of `result`

  explicit LocalSession(std::unique_ptr<SessionWire> wire) : wire_(std::move(wire)) {}
  // Creates a client of the host in this process. The host's loop runs while a request is pending.
  explicit LocalSession(Host &host);

  // Sends `initialize` and `notifications/initialized`.
  std::expected<void, Failure> open();
  // `params` is a JSON object. If `slow` is set, it is called once if there is no response within
  // slow_ms.
  Answer request(std::string_view method, std::string_view params, std::uint64_t timeout_ms,
                 const std::function<void()> &slow = nullptr);
  // Requests all pages of a list, and returns the JSON of each item.
  std::expected<std::vector<std::string>, Failure> list(std::string_view method,
                                                        std::string_view key);

 private:
  static constexpr std::uint64_t list_timeout_ms = 60'000, slow_ms = 1'000;
  static constexpr std::size_t max_pages = 10'000;

  void on_message(std::string_view message);

  const std::unique_ptr<SessionWire> wire_;
  std::uint64_t next_id_ = 0;
  std::string waiting_for_;  // the JSON of the pending request's ID
  bool answered_ = false;
  Answer answer_;
};

}  // namespace bulkhead::program
