// Masks credentials in recorded text. The telemetry compartment has no credentials, so it cannot
// find them by value. Instead, a value is masked because of its member name ("password") or its
// format ("ghp_...", "Bearer ..."). Names and values are compared in decoded form, through up to 8
// layers of JSON escapes, URL escapes, and JSON within JSON strings.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace telemetry_sqlite {

// Masks JSON text, which may be truncated. Replaces values with "***" and adds their number to
// *count. Unchanged text is not copied.
void mask_json(std::string *json, std::uint64_t *count);

// Masks credentials in any text by their format.
void mask_text(std::string *text, std::uint64_t *count);

// Masks the last word of a truncated text, up to 512 bytes, because a partial credential cannot be
// recognized.
void mask_cut_end(std::string *text, std::uint64_t *count);

bool is_secret_name(std::string_view member_name);

}  // namespace telemetry_sqlite
