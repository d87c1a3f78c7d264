#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"

namespace bulkhead::pipe {

// What the route needs of the plugins at its two ends, and of the program.
class Ends {
 public:
  virtual void to_client(std::string_view message) = 0;
  // At most one lane is open at a time, but the one before may still be ending.
  virtual Result<void> open_lane(bh_lane lane) = 0;
  virtual Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) = 0;
  virtual void finish_lane() = 0;  // half-close
  virtual void close_lane() = 0;
  // Reads nothing more from the open lane, or the client, until told otherwise. The present message
  // of the client is then its last one.
  virtual void hold_lane(bool hold) = 0;
  virtual void hold_client(bool hold) = 0;
  virtual void log(std::int32_t level, std::string_view text) = 0;
  // Everything is said and answered. failure: empty, or why the program could not do its work.
  virtual void done(std::string_view failure) = 0;

 protected:
  ~Ends() = default;
};

}  // namespace bulkhead::pipe
