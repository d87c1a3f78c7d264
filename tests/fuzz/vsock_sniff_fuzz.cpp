// Fuzzes protocol detection. The result must not depend on how the input is split, must be
// available in time, and must be final.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "mcp-frame/frame.hpp"
#include "transport-vsock/sniff.hpp"

namespace {

using transport_vsock::Sniffed;

void require(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  const std::string_view in(reinterpret_cast<const char *>(data), size);
  const std::vector<std::string> prefixes{"OWN"};
  const Sniffed whole = transport_vsock::sniff(in, prefixes, mcp_frame::max_total);
  require(whole.start <= in.size());
  if (whole.kind == Sniffed::Kind::more) require(in.size() < transport_vsock::max_undecided);
  if (whole.kind == Sniffed::Kind::frames) {
    require(mcp_frame::looks_like_frame(in.substr(whole.start)));
  }
  if (whole.kind == Sniffed::Kind::lines) require(in[whole.start] == '{');
  bool decided = false;
  for (std::size_t n = 0; n <= in.size() && !decided; ++n) {
    // A copy of exactly this size, so that the sanitizer detects reads beyond its end.
    const std::vector<char> piece(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    const Sniffed part = transport_vsock::sniff({piece.data(), n}, prefixes, mcp_frame::max_total);
    decided = part.kind != Sniffed::Kind::more;
    if (!decided) continue;
    require(part.kind == whole.kind && part.start == whole.start);
    require(part.name.size() == whole.name.size());
  }
  require(decided == (whole.kind != Sniffed::Kind::more));
  return 0;
}
