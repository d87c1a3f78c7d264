// Collects the request headers that are forwarded to the host: MCP-Protocol-Version, Mcp-Method,
// Mcp-Name and Mcp-Param-*. Does not allocate memory; the views refer to the head.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "bulkhead/abi/core.h"

namespace transport_http {

class McpHeaders {
 public:
  // `head` must be a complete head that HeadParser has accepted.
  explicit McpHeaders(std::string_view head) noexcept;

  // Returns true if the number or size of the headers exceeds the limits of bh_header.
  bool too_many() const noexcept { return too_many_; }
  std::span<const bh_header> all() const noexcept { return {headers_.data(), count_}; }

 private:
  void add(std::string_view name, std::string_view value) noexcept;

  std::array<bh_header, BH_HEADER_COUNT> headers_;
  std::size_t count_ = 0;
  std::uint64_t bytes_ = 0;
  bool too_many_ = false;
};

}  // namespace transport_http
