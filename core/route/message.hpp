// A JSON-RPC message together with its scan, so it is scanned only once.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "mcp/scan.hpp"

namespace bulkhead {

// Borrows the bytes and their scan, which are valid until the function that received the message
// returns. A message that is needed for longer is parked.
struct Message {
  std::string_view bytes;
  const mcp::Scan *scan = nullptr;

  std::string_view operator[](mcp::Range range) const noexcept { return range.in(bytes); }
  std::string_view id() const noexcept { return scan->id.in(bytes); }
  std::size_t size() const noexcept { return bytes.size(); }
};

// The MCP headers of a message from a wire that has headers; see bh_incoming. Borrowed.
using WireHeaders = std::span<const bh_header>;

// A copy of a message and its scan, for a waiting call or answer. Immutable; copies of the handle
// share the data, so a thread of the pool can read it after its call has ended.
class ParkedMessage {
 public:
  ParkedMessage() = default;
  explicit ParkedMessage(const Message &message)
      : kept_(std::make_shared<const Kept>(Kept{std::string(message.bytes), *message.scan})) {}

  bool empty() const noexcept { return kept_ == nullptr; }
  std::size_t size() const noexcept { return kept_ == nullptr ? 0 : kept_->bytes.size(); }
  // Requires !empty(). The result is valid as long as any copy exists.
  Message get() const noexcept { return {kept_->bytes, &kept_->scan}; }
  // Returns the bytes, which also keep the scan alive.
  std::shared_ptr<const std::string> bytes() const { return {kept_, &kept_->bytes}; }

 private:
  struct Kept {
    std::string bytes;
    mcp::Scan scan;
  };
  std::shared_ptr<const Kept> kept_;
};

}  // namespace bulkhead
