// Writes attributes in OTLP's JSON format. Values are truncated to max_text bytes.
#pragma once

#include <bulkhead/cpp/json_writer.hpp>

#include <cstdint>
#include <string_view>

namespace otlp {

using bh::json::Writer;

void put_attribute(Writer &out, std::string_view key, std::string_view value);
void put_known(Writer &out, std::string_view key, std::string_view value);  // omitted if empty
void put_number(Writer &out, std::string_view key, std::uint64_t value);

}  // namespace otlp
