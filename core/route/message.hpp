// Defines a JSON-RPC message together with the result of its scan, so that each message is scanned
// only once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "mcp/scan.hpp"

namespace bulkhead {

// A message and its scan, both borrowed. They are valid until the function that received the
// Message returns. To keep a message longer, use ParkedMessage.
struct Message {
  std::string_view bytes;
  const mcp::Scan *scan = nullptr;

  std::string_view operator[](mcp::Range range) const noexcept { return range.in(bytes); }
  std::string_view id() const noexcept { return scan->id.in(bytes); }
  std::size_t size() const noexcept { return bytes.size(); }
};

// The MCP headers of a message, for transports that have headers; see bh_incoming. Borrowed.
using WireHeaders = std::span<const bh_header>;

// An immutable copy of a message and its scan, for a parked call or response. Copies of this object
// share the data, so a pool thread can read the message after its call has finished.
class ParkedMessage {
 public:
  ParkedMessage() = default;
  explicit ParkedMessage(const Message &message)
      : kept_(std::make_shared<const Kept>(Kept{std::string(message.bytes), *message.scan})) {}

  bool empty() const noexcept { return kept_ == nullptr; }
  std::size_t size() const noexcept { return kept_ == nullptr ? 0 : kept_->bytes.size(); }
  // Requires !empty(). The message is valid while any copy of this object exists.
  Message get() const noexcept { return {kept_->bytes, &kept_->scan}; }
  // Requires !empty(). The returned pointer also keeps the scan alive.
  std::shared_ptr<const std::string> bytes() const { return {kept_, &kept_->bytes}; }

 private:
  struct Kept {
    std::string bytes;
    mcp::Scan scan;
  };
  std::shared_ptr<const Kept> kept_;
};

}  // namespace bulkhead
