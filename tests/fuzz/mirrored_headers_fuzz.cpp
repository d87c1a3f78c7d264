// Fuzzes mirrored headers. The input is a header value, an inputSchema and arguments, separated by
// NUL bytes. A decoded value must encode to the same text, the annotations of a schema must be
// within their limits, and headers that were composed from arguments must be accepted for these
// arguments.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/param_headers.hpp"

namespace {

using namespace bulkhead::mcp;

void require(bool ok, const char *what) {
  if (ok) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

std::string encoded(std::string_view text) {
  std::string out;
  append_header_value(&out, text);
  require(bh::is_header_value(out), "an encoded text is a header value");
  return out;
}

void check_value(std::string_view value) {
  std::string scratch, again;
  const HeaderText decoded = decode_header_value(value, &scratch);
  const std::string text(decoded.problem == nullptr ? std::string(decoded.text)
                                                    : bh::repaired_utf8(value));
  require(bh::is_utf8(text), "a decoded text is UTF-8");
  const std::string written = encoded(text);
  const std::string_view sent = trimmed_header_value(value);
  const bool both_encoded = decoded.text.data() == scratch.data() &&
                            written.starts_with("=?base64?") && written.ends_with("?=");
  require(!both_encoded || written == sent, "base64 has one form");
  const HeaderText same = decode_header_value(written, &again);
  require(same.problem == nullptr && same.text == text, "an encoded text decodes to itself");
}

void check_schema(const ParamHeaders &params) {
  require(params.size() <= max_param_headers, "the annotations are limited");
  for (std::size_t i = 0; i < params.size(); ++i) {
    require(bh::is_token(params[i].header), "a header name is a token");
    require(!params[i].path.empty(), "an annotation is on a property");
    for (std::size_t k = 0; k < i; ++k) {
      require(!bh::equal_ignoring_case(params[i].header, params[k].header), "names are unique");
      require(params[k].path < params[i].path, "paths are unique and sorted");
    }
  }
}

void check_arguments(const ParamHeaders &params, std::string_view arguments) {
  HeaderList list;
  const auto fault = add_param_headers(params, arguments, &list);
  if (fault) {
    require(!fault->header.empty() && !fault->text.empty(), "a fault has a reason");
    return;
  }
  require(!check_param_headers(params, arguments, list.all()), "composed headers are accepted");
  if (list.empty()) return;
  require(check_param_headers(params, arguments, list.all().subspan(1)).has_value(),
          "a missing header is a fault");
}

std::string_view next_part(std::string_view *rest) {
  const std::size_t end = std::min(rest->find('\0'), rest->size());
  const std::string_view part = rest->substr(0, end);
  rest->remove_prefix(std::min(end + 1, rest->size()));
  return part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  std::string_view rest(reinterpret_cast<const char *>(data), size);
  check_value(next_part(&rest));
  const std::string_view schema = next_part(&rest);
  const auto params = read_param_headers(schema);
  if (!params) {
    require(bh::is_utf8(params.error().text) && params.error().text.size() < 500,
            "a reason is a short text");
    return 0;
  }
  check_schema(*params);
  check_arguments(*params, rest);
  return 0;
}
