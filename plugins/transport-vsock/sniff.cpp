#include "transport-vsock/sniff.hpp"

#include "mcp-frame/frame.hpp"
#include "mcp-frame/metadata_line.hpp"

namespace transport_vsock {

static_assert(max_undecided == mcp_frame::max_metadata_line + mcp_frame::sniff_bytes);

Sniffed sniff(std::string_view in, std::span<const std::string> metadata_prefixes,
              std::size_t max_frame) {
  using enum Sniffed::Kind;
  const mcp_frame::Metadata metadata = mcp_frame::parse_metadata(in, metadata_prefixes);
  if (metadata.state == mcp_frame::Metadata::State::more) return {};
  if (metadata.state == mcp_frame::Metadata::State::too_long) return {refused, 0, {}};
  const std::string_view rest = in.substr(metadata.size);
  Sniffed out{more, metadata.size, metadata.name};
  if (rest.empty()) return out;
  if (rest.front() == '{') {
    out.kind = lines;
  } else if (static_cast<unsigned char>(rest.front()) > (max_frame >> 24)) {
    out.kind = other;  // a frame starts with the first byte of its length
  } else if (rest.size() >= mcp_frame::sniff_bytes) {
    out.kind = mcp_frame::looks_like_frame(rest, max_frame) ? frames : other;
  }
  return out;
}

}  // namespace transport_vsock
