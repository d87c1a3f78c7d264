#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"

namespace bulkhead::pipe {

// The route's interface to the transport, the connector and the program.
class Ends {
 public:
  virtual void to_client(std::string_view message) = 0;
  // Only one lane is open at a time, but the previous lane may still be closing.
  virtual Result<void> open_lane(bh_lane lane) = 0;
  virtual Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) = 0;
  virtual void finish_lane() = 0;  // half-close
  virtual void close_lane() = 0;
  // Pauses or resumes reading from the lane or the client. If the client is paused, no messages
  // follow the current one until reading is resumed.
  virtual void hold_lane(bool hold) = 0;
  virtual void hold_client(bool hold) = 0;
  virtual void log(std::int32_t level, std::string_view text) = 0;
  // Called once, when the route ends. `failure` is empty, or the reason why the program has failed.
  virtual void done(std::string_view failure) = 0;

 protected:
  ~Ends() = default;
};

}  // namespace bulkhead::pipe
