// Writes attributes in OTLP's JSON. Texts are cut at max_text.
#pragma once

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <cstdint>
#include <string_view>

namespace otlp {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

std::string_view cut(std::string_view text, std::size_t max);
void put_text(Writer &out, const char *key, std::string_view value);
void put_attribute(Writer &out, const char *key, std::string_view value);
void put_known(Writer &out, const char *key, std::string_view value);  // omitted if empty
void put_number(Writer &out, const char *key, std::uint64_t value);

}  // namespace otlp
