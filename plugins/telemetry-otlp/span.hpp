// One record as a span of OTLP/HTTP JSON.
#pragma once

#include <bulkhead/abi/ext/telemetry.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace otlp {

// The longest text of an attribute; a longer one is cut between characters.
inline constexpr std::size_t max_text = 512;

// A text without the gateway's own credentials. Thread: [io].
using Mask = std::function<std::string(std::string_view)>;

// The JSON of one span. What client and server said to each other, and the texts of errors, are not
// in it. A record that is offered twice gives the same span. `mask` sees every text that a client,
// a server or a program chose, before it is cut; none: there is nothing to mask.
std::string span_json(const bh_record &record, const Mask &mask = nullptr);

// The body of a request with the first n spans.
std::string traces_body(std::string_view service_name, const std::deque<std::string> &spans,
                        std::size_t n);

// {"attributes":[...]} of the process that reports.
std::string resource_json(std::string_view service_name);

}  // namespace otlp
