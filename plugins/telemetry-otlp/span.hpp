// Converts records to OTLP spans in JSON.
#pragma once

#include <bulkhead/abi/ext/telemetry.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace otlp {

// Maximum size of an attribute value in bytes. Longer values are truncated at a character boundary.
inline constexpr std::size_t max_text = 512;

// Returns the text with the gateway's own credentials masked. Runs on the reactor thread.
using Mask = std::function<std::string(std::string_view)>;

// Returns a record as a span in JSON, without message contents or error messages: a call as a span
// of kind server, and a change of a plugin's file or of the policies as a span of kind internal.
// Returns an empty string for other kinds. The same record always produces the same span. If `mask` is not null, it is applied to all strings from clients,
// servers and programs before they are truncated.
std::string span_json(const bh_record &record, const Mask &mask = nullptr);

// Returns the body of a request that contains the first n spans.
std::string traces_body(std::string_view service_name, const std::deque<std::string> &spans,
                        std::size_t n);

// Returns the attributes that describe this process: {"attributes":[...]}.
std::string resource_json(std::string_view service_name);

}  // namespace otlp
