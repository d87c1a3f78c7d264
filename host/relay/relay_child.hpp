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
  static constexpr std::size_t max_line_bytes = 16u << 20;

  // This very program, with these arguments.
  explicit RelayChild(const std::vector<std::string> &arguments);
  ~RelayChild();
  RelayChild(const RelayChild &) = delete;
  RelayChild &operator=(const RelayChild &) = delete;

  bool started() const noexcept { return pid_ > 0; }
  bool send(std::string_view line);
  // The next answer (what has a method is not one); nullopt: none in time, or the relay has ended.
  std::optional<std::string> answer();
  // Ends its input and waits for it; its exit code, -1 if it did not end by itself.
  int end();

 private:
  std::optional<std::string> line();

  pid_t pid_ = -1;
  OwnedFd in_, out_;
  std::string read_;
};

}  // namespace bulkhead::relay
