// A relay as a child process, used by doctor like an MCP client would.
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
  static constexpr int next_wait_ms = 5'000;     // after one answer has timed out
  static constexpr std::size_t max_line_bytes = 16u << 20;

  // Starts this program with these arguments.
  explicit RelayChild(const std::vector<std::string> &arguments);
  ~RelayChild();
  RelayChild(const RelayChild &) = delete;
  RelayChild &operator=(const RelayChild &) = delete;

  bool started() const noexcept { return pid_ > 0; }
  bool send(std::string_view line);
  // The answer to this id (JSON text; empty: an answer without id or with null). Messages with a
  // method are skipped, and other answers are strays. nullopt: time-out, or the relay has ended.
  std::optional<std::string> answer(std::string_view id);
  // The first unexpected answer since the last call; empty: none.
  std::string next_stray();
  // Closes its input and waits for it; returns its exit code, -1 if it did not exit by itself.
  int end();

 private:
  std::optional<std::string> line();

  pid_t pid_ = -1;
  OwnedFd in_, out_;
  std::string read_, stray_;
  int wait_ms_ = answer_wait_ms;
};

}  // namespace bulkhead::relay
