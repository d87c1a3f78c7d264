#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"

namespace bulkhead::pipe {

// The route's interface to the plugins on both sides and to the program.
class Ends {
 public:
  virtual void to_client(std::string_view message) = 0;
  // At most one lane is open at a time, but the previous lane may not yet be closed.
  virtual Result<void> open_lane(bh_lane lane) = 0;
  virtual Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) = 0;
  virtual void finish_lane() = 0;  // half-close
  virtual void close_lane() = 0;
  // Pauses or resumes reading from the open lane or the client. After the client is paused, no
  // message after the current one is read until reading resumes.
  virtual void hold_lane(bool hold) = 0;
  virtual void hold_client(bool hold) = 0;
  virtual void log(std::int32_t level, std::string_view text) = 0;
  // Called when all messages have been sent and all requests have been answered. `failure` is the
  // reason why the program failed, or empty.
  virtual void done(std::string_view failure) = 0;

 protected:
  ~Ends() = default;
};

}  // namespace bulkhead::pipe
