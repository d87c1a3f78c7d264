// Converts records to spans in OTLP/HTTP JSON.
#pragma once

#include <bulkhead/abi/ext/telemetry.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace otlp {

// Limit for the text of an attribute; longer texts are cut between characters.
inline constexpr std::size_t max_text = 512;

// Returns the text without the gateway's own credentials. Thread: [io].
using Mask = std::function<std::string(std::string_view)>;

// The JSON of one span, without the contents of messages and the texts of errors. A record that is
// offered twice gives the same span. `mask` is applied to every text chosen by a client, server or
// program, before it is cut; null: no masking.
std::string span_json(const bh_record &record, const Mask &mask = nullptr);

// The body of a request with the first n spans.
std::string traces_body(std::string_view service_name, const std::deque<std::string> &spans,
                        std::size_t n);

// The attributes of the reporting process: {"attributes":[...]}.
std::string resource_json(std::string_view service_name);

}  // namespace otlp
