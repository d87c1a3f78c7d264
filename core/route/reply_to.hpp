// The address for the answer to a client's message, and the form of the result.
#pragma once

#include <cstdint>

namespace bulkhead {

class ResultForm;

struct ReplyTo {
  std::uint64_t session = 0;
  std::uint64_t stream = 0;  // the transport's slot for the answer; 0 for the general stream
  std::uint64_t batch = 0;   // of ClientBatches, which collects the answers; 0 if none
  const ResultForm *form = nullptr;  // set by the client edge; if null, results are sent unchanged

  friend bool operator==(const ReplyTo &, const ReplyTo &) = default;
};

}  // namespace bulkhead
