// A relay as a child process, talked to as an MCP client does: for doctor.
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
  static constexpr int answer_wait_ms = 40'000;  // the relay itself tries for 30 s to connect
  static constexpr int next_wait_ms = 5'000;     // once it has been waited for in vain
  static constexpr std::size_t max_line_bytes = 16u << 20;

  // This very program, with these arguments.
  explicit RelayChild(const std::vector<std::string> &arguments);
  ~RelayChild();
  RelayChild(const RelayChild &) = delete;
  RelayChild &operator=(const RelayChild &) = delete;

  bool started() const noexcept { return pid_ > 0; }
  bool send(std::string_view line);
  // The answer to this id (JSON text; empty: one without an id, or with null). What has a method
  // is none, and another answer is a stray. nullopt: none in time, or the relay has ended.
  std::optional<std::string> answer(std::string_view id);
  // The first answer that nobody has asked for since the last look; empty: there was none.
  std::string take_stray();
  // Ends its input and waits for it; its exit code, -1 if it did not end by itself.
  int end();

 private:
  std::optional<std::string> line();

  pid_t pid_ = -1;
  OwnedFd in_, out_;
  std::string read_, stray_;
  int wait_ms_ = answer_wait_ms;
};

}  // namespace bulkhead::relay
