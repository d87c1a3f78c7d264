// The address of the answer to a client's message.
#pragma once

#include <cstdint>

namespace bulkhead {

struct ReplyTo {
  std::uint64_t session = 0;
  std::uint64_t stream = 0;  // the transport's place for the answer; 0: the session's general one
  std::uint64_t batch = 0;   // of ClientBatches, which collects the answers for one stream; 0: none

  friend bool operator==(const ReplyTo &, const ReplyTo &) = default;
};

}  // namespace bulkhead
