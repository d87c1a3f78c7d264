// Runs a relay as a child process. `doctor` uses it as an MCP client would.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"

namespace bulkhead::relay {

class RelayChild {
 public:
  static constexpr int answer_wait_ms = 40'000;  // the relay tries to connect for 30 s
  static constexpr int next_wait_ms = 5'000;     // after a response has timed out
  static constexpr std::size_t max_line_bytes = 16u << 20;

  // Starts this program with these arguments.
  explicit RelayChild(const std::vector<std::string> &arguments);
  ~RelayChild();
  RelayChild(const RelayChild &) = delete;
  RelayChild &operator=(const RelayChild &) = delete;

  bool started() const noexcept { return pid_ > 0; }
  bool send(std::string_view line);
  // Returns the response with this ID as JSON. If `id` is empty, returns the response that has no
  // ID or a null ID. Requests and notifications are skipped. Other responses are skipped as well,
  // but the first of them is kept for next_stray(). Returns nullopt after a timeout or if the relay
  // has exited.
  std::optional<std::string> answer(std::string_view id);
  // Returns the first response with an unexpected ID since the last call, or an empty string.
  std::string next_stray();
  // Closes the relay's standard input and waits for the relay to exit. Returns the relay's exit
  // code, or -1 if it was terminated by a signal or did not exit in time.
  int end();

 private:
  std::optional<std::string> line();

  pid_t pid_ = -1;
  OwnedFd in_, out_;
  std::string read_, stray_;
  int wait_ms_ = answer_wait_ms;
};

}  // namespace bulkhead::relay
