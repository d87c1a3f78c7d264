// Converts records to spans in OTLP/HTTP JSON.
#pragma once

#include <bulkhead/abi/ext/telemetry.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace otlp {

// Limit for the value of an attribute. Longer values are truncated at a character boundary.
inline constexpr std::size_t max_text = 512;

// Returns the text without the gateway's own credentials. Runs on the reactor thread.
using Mask = std::function<std::string(std::string_view)>;

// Returns the JSON of one span, without message contents and error messages. A record that is
// offered twice results in the same span. `mask` is applied to every string chosen by a client,
// server or program before it is truncated. If `mask` is null, strings are not masked.
std::string span_json(const bh_record &record, const Mask &mask = nullptr);

// Returns the body of a request with the first n spans.
std::string traces_body(std::string_view service_name, const std::deque<std::string> &spans,
                        std::size_t n);

// Returns the attributes of the reporting process: {"attributes":[...]}.
std::string resource_json(std::string_view service_name);

}  // namespace otlp
