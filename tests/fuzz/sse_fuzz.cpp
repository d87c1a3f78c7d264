// Fuzzes the parser of event streams. The events must be within the limits and must not depend on
// how the input is split.
//
// The first two bytes of the input select how it is split and the limit.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sse.hpp"

namespace {

using connector_http::SseEvent;
using connector_http::SseParser;

struct Outcome {
  std::vector<std::pair<std::string, std::string>> events;
  std::string last_id;
  std::uint64_t retry = 0;
  bool too_large = false;

  friend bool operator==(const Outcome &, const Outcome &) = default;
};

void require(bool holds) {
  if (!holds) std::abort();
}

Outcome run(std::string_view in, std::size_t bound, std::uint8_t cut) {
  SseParser parser(bound);
  Outcome out;
  std::uint32_t random = cut;
  while (!in.empty() && !out.too_large) {
    random = random * 1664525u + 1013904223u;
    const std::size_t n =
        cut == 0 ? in.size() : std::min<std::size_t>(in.size(), 1 + (random >> 24) % cut);
    // A copy of exactly this size, so that the sanitizer detects views that outlive it.
    const std::vector<char> piece(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
    in.remove_prefix(n);
    std::size_t at = 0;
    SseEvent event;
    for (;;) {
      const SseParser::Step step = parser.next({piece.data(), piece.size()}, &at, &event);
      if (step == SseParser::Step::event) {
        require(event.data.size() <= bound);
        out.events.emplace_back(event.type, event.data);
        continue;
      }
      out.too_large = step == SseParser::Step::too_large;
      require(out.too_large || at == piece.size());
      break;
    }
  }
  require(parser.last_event_id().size() <= 1024);
  out.last_id = parser.last_event_id();
  out.retry = parser.retry_ms() ? *parser.retry_ms() + 1ull : 0;
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t bound = data[1] < 128 ? data[1] + 1u : 1u << 20;
  const std::string_view in(reinterpret_cast<const char *>(data) + 2, size - 2);
  const Outcome whole = run(in, bound, 0);
  require(whole == run(in, bound, 1));
  require(whole == run(in, bound, data[0]));
  return 0;
}
