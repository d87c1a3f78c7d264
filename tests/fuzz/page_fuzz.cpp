// Fuzzes the conversion of untrusted pages. The result must be an error or UTF-8 text of limited
// size, and its parts must match the whole text. The first byte of the input selects the format,
// the second the declared type.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "builtin-http/page.hpp"
#include "builtin-http/paging.hpp"
#include "bulkhead/cpp/text.hpp"
#include "tool-kit/results.hpp"

namespace {

using namespace builtin_http;

constexpr const char *types[] = {"text/html",
                                 "",
                                 "text/html; charset=shift_jis",
                                 "text/html; charset=gb18030",
                                 "text/plain; charset=utf-16le",
                                 "application/json"};
// bytes of output per byte of input, because of indentation, markup and empty table cells
constexpr std::size_t max_growth = 100;

void require(bool holds) {
  if (!holds) std::abort();
}

void read_in_parts(const std::string &text) {
  std::string read;
  Paging paging{0, 7};
  while (read.size() < text.size()) {
    Part part;
    std::string problem;
    require(part_of(text, paging, &part, &problem));
    require(part.begin == read.size() && part.end > part.begin);
    read += text.substr(part.begin, part.end - part.begin);
    paging.start_index = part.end;
  }
  require(read == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 2) return 0;
  const std::atomic<bool> never{false};
  const auto format = static_cast<Format>(data[0] % 3);
  Response response;
  response.headers = {{"content-type", types[data[1] % std::size(types)]}};
  response.body.assign(reinterpret_cast<const char *>(data + 2), size - 2);
  std::string text;
  std::string problem;
  if (!page_text(&response, format, never, &text, &problem)) {
    require(!problem.empty());
    return 0;
  }
  require(bh::is_utf8(text));
  require(text.size() <= (size + 16) * max_growth);
  if (text.size() < 4096) read_in_parts(text);
  return 0;
}
