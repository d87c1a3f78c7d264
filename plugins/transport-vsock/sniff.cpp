#include "transport-vsock/sniff.hpp"

#include "mcp-frame/frame.hpp"
#include "mcp-frame/metadata_line.hpp"

namespace transport_vsock {

static_assert(max_undecided == mcp_frame::max_metadata_line + mcp_frame::sniff_bytes);

Sniffed sniff(std::string_view in, std::span<const std::string> metadata_prefixes) {
  using enum Sniffed::Kind;
  const mcp_frame::Metadata metadata = mcp_frame::parse_metadata(in, metadata_prefixes);
  if (metadata.state == mcp_frame::Metadata::State::more) return {};
  if (metadata.state == mcp_frame::Metadata::State::too_long) return {refused, 0, {}};
  const std::string_view rest = in.substr(metadata.size);
  Sniffed out{more, metadata.size, metadata.name};
  if (rest.empty()) return out;
  if (rest.front() == '{') {
    out.kind = lines;
  } else if (rest.front() != '\0') {
    out.kind = other;  // max_total is below 2^24, so a frame starts with NUL
  } else if (rest.size() >= mcp_frame::sniff_bytes) {
    out.kind = mcp_frame::looks_like_frame(rest) ? frames : other;
  }
  return out;
}

}  // namespace transport_vsock
