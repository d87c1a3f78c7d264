// The address to which the response to a client's message is sent.
#pragma once

#include <cstdint>

namespace bulkhead {

class ResultForm;

struct ReplyTo {
  std::uint64_t session = 0;
  // The transport's id for this response, or 0 for the session's general stream.
  std::uint64_t stream = 0;
  // Handle of the batch in ClientBatches, or 0 if the message is not part of a batch.
  std::uint64_t batch = 0;
  const ResultForm *form = nullptr;  // set by the client edge; if null, results are sent unchanged

  friend bool operator==(const ReplyTo &, const ReplyTo &) = default;
};

}  // namespace bulkhead
