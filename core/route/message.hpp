// A JSON-RPC message with the one scan of it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"

namespace bulkhead {

// Borrows the bytes and their scan: valid while whoever handed it over has them, which is until the
// call returns. What has to wait longer is parked.
struct Message {
  std::string_view bytes;
  const mcp::Scan *scan = nullptr;

  std::string_view operator[](mcp::Range range) const noexcept { return range.in(bytes); }
  std::string_view id() const noexcept { return scan->id.in(bytes); }
  std::size_t size() const noexcept { return bytes.size(); }
};

// A copy of a message and of its scan, for a call or an answer that waits. Never changes; copies of
// the handle share it, so that a thread of the pool may read what its owner has given up.
class ParkedMessage {
 public:
  ParkedMessage() = default;
  explicit ParkedMessage(const Message &message)
      : kept_(std::make_shared<const Kept>(Kept{std::string(message.bytes), *message.scan})) {}

  bool empty() const noexcept { return kept_ == nullptr; }
  std::size_t size() const noexcept { return kept_ == nullptr ? 0 : kept_->bytes.size(); }
  // Only of one that is not empty; as long as a handle to it exists.
  Message get() const noexcept { return {kept_->bytes, &kept_->scan}; }
  // The bytes alone, which keep the whole alive.
  std::shared_ptr<const std::string> bytes() const { return {kept_, &kept_->bytes}; }

 private:
  struct Kept {
    std::string bytes;
    mcp::Scan scan;
  };
  std::shared_ptr<const Kept> kept_;
};

}  // namespace bulkhead
