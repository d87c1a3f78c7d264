// The address of the answer to a client's message, and the form of a result.
#pragma once

#include <cstdint>

namespace bulkhead {

class ResultForm;

struct ReplyTo {
  std::uint64_t session = 0;
  std::uint64_t stream = 0;  // the transport's place for the answer; 0: the session's general one
  std::uint64_t batch = 0;   // of ClientBatches, which collects the answers for one stream; 0: none
  const ResultForm *form = nullptr;  // set by the client edge; null: results are sent as they are

  friend bool operator==(const ReplyTo &, const ReplyTo &) = default;
};

}  // namespace bulkhead
