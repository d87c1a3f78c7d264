// A relay as a child process, which doctor uses like an MCP client.
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
  static constexpr int answer_wait_ms = 40'000;  // the relay itself tries to connect for 30 s
  static constexpr int next_wait_ms = 5'000;     // after a response has timed out
  static constexpr std::size_t max_line_bytes = 16u << 20;

  // Starts this program with the given arguments.
  explicit RelayChild(const std::vector<std::string> &arguments);
  ~RelayChild();
  RelayChild(const RelayChild &) = delete;
  RelayChild &operator=(const RelayChild &) = delete;

  bool started() const noexcept { return pid_ > 0; }
  bool send(std::string_view line);
  // Returns the response with this id as JSON. If `id` is empty, returns a response without an id
  // or with id null. Skips messages with a method; other responses are kept for next_stray().
  // Returns nullopt after a time-out or if the relay has exited.
  std::optional<std::string> answer(std::string_view id);
  // Returns the first unexpected response since the last call, or an empty string.
  std::string next_stray();
  // Closes the relay's input and waits for the relay to exit. Returns its exit code, or -1 if it
  // did not exit in time or was ended by a signal.
  int end();

 private:
  std::optional<std::string> line();

  pid_t pid_ = -1;
  OwnedFd in_, out_;
  std::string read_, stray_;
  int wait_ms_ = answer_wait_ms;
};

}  // namespace bulkhead::relay
