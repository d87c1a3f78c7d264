// Masks credentials in recorded texts. The telemetry compartment has no credentials, so it cannot
// find them by value: a value is masked by the name of its member ("password") or by its shape
// ("ghp_...", "Bearer ..."). Names and values are compared in decoded form: JSON and URL escapes,
// and JSON inside of JSON strings, up to 8 layers.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace telemetry_sqlite {

// Masks JSON text, which may be truncated. Masked values become "***"; *count is increased by their
// number. Unchanged text is not copied.
void mask_json(std::string *json, std::uint64_t *count);

// Masks any text by shape.
void mask_text(std::string *text, std::uint64_t *count);

// Masks the last word of a truncated text, at most 512 bytes, since part of a credential cannot be
// recognized.
void mask_cut_end(std::string *text, std::uint64_t *count);

bool is_secret_name(std::string_view member_name);

}  // namespace telemetry_sqlite
