// Fuzzes the aggregator's protocol. The messages must not depend on how the input is split.
// MessagePack must convert to valid JSON and back. Functions that read requests, definitions and
// replies must accept any valid JSON.
//
// The first byte of the input selects how it is split.
#include <bulkhead-aggregator/frames.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "transport-aggregator/definitions.hpp"
#include "transport-aggregator/replies.hpp"
#include "transport-aggregator/request.hpp"

namespace {

using namespace bh::aggregator;
using namespace transport_aggregator;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Outcome {
  std::vector<std::string> messages;
  Codec codec = Codec::automatic;
  bool broken = false;

  friend bool operator==(const Outcome &, const Outcome &) = default;
};

Outcome cut(std::string_view in, std::uint8_t most) {
  FrameCutter cutter(Codec::automatic);
  Outcome out;
  std::uint32_t random = most;
  while (!in.empty() && !out.broken) {
    random = random * 1664525u + 1013904223u;
    const std::size_t n =
        most == 0 ? in.size() : std::min<std::size_t>(in.size(), 1 + (random >> 24) % most);
    cutter.add(in.substr(0, n));
    in.remove_prefix(n);
    for (auto next = cutter.next(); next != FrameCutter::Next::more; next = cutter.next()) {
      out.broken = next == FrameCutter::Next::broken;
      if (out.broken) break;
      if (next == FrameCutter::Next::message) out.messages.emplace_back(cutter.message());
    }
  }
  if (!out.broken && cutter.last_line()) out.messages.emplace_back(cutter.message());
  out.codec = cutter.codec();
  return out;
}

void look_at(std::string_view text) {
  require(bh::json::valid(text));
  Request request;
  const RequestError error = parse_request(text, &request);
  if (error.what == nullptr && !request.arguments.empty()) {
    require(bh::json::valid(request.arguments));
  }
  std::vector<std::string> notes;
  require(bh::json::valid(translate_definitions(text, {{"x"}, 1000}, &notes)));
  require(bh::json::valid(servers_reply(1, text)));
  for (const Method method : {Method::list_tools, Method::list_resources, Method::list_prompts}) {
    require(bh::json::valid(items_reply(1, method, text)));
  }
  // Conversion to MessagePack must preserve the value. Numbers may change only in the first
  // conversion.
  std::string packed, once, again, twice;
  if (bh::msgpack::from_json(text, &packed) != nullptr) return;
  if (bh::msgpack::to_json(packed, &once) != nullptr) return;  // exceeds the size limit
  require(bh::msgpack::from_json(once, &again) == nullptr);
  require(bh::msgpack::to_json(again, &twice) == nullptr);
  require(once == twice);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view in(reinterpret_cast<const char *>(data) + 1, size - 1);
  const Outcome whole = cut(in, 0);
  require(whole == cut(in, 1));
  require(whole == cut(in, data[0]));
  for (const std::string &message : whole.messages) {
    std::string scratch;
    std::string_view text;
    if (decode_message(whole.codec, message, &scratch, &text) == nullptr) look_at(text);
  }
  return 0;
}
