// Credentials out of what is kept. The gateway's record keeper holds no credentials, so it cannot
// know them by value: a value goes by the name of its member ("password"), or by its own shape
// ("ghp_...", "Bearer ..."). Names and values count as what they stand for: behind escapes of JSON
// and of URLs, and in JSON that is itself a string, up to 8 layers.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace telemetry_sqlite {

// JSON text, perhaps cut at its end. What is masked becomes "***"; *count grows by how many. A text
// in which nothing is stays where it is.
void mask_json(std::string *json, std::uint64_t *count);

// Any text: by shape only.
void mask_text(std::string *text, std::uint64_t *count);

// Of a text that was cut: the word at its end, at most 512 bytes of it, since a part of a
// credential is not known as one.
void mask_cut_end(std::string *text, std::uint64_t *count);

bool is_secret_name(std::string_view member_name);

}  // namespace telemetry_sqlite
