// One record as a span of OTLP/HTTP JSON.
#pragma once

#include <bulkhead/abi/ext/telemetry.h>

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

namespace otlp {

// The longest text of an attribute; a longer one is cut between characters.
inline constexpr std::size_t max_text = 512;

// The JSON of one span. What client and server said to each other, and the texts of errors, are not
// in it. A record that is offered twice gives the same span.
std::string span_json(const bh_record &record);

// The body of a request with the first n spans.
std::string traces_body(std::string_view service_name, const std::deque<std::string> &spans,
                        std::size_t n);

// {"attributes":[...]} of the process that reports.
std::string resource_json(std::string_view service_name);

}  // namespace otlp
