// Masks credentials in recorded text. The telemetry compartment does not know the credentials, so
// it cannot search for their values. Instead, it masks values of members with a secret name
// ("password") and strings in the format of a credential ("ghp_...", "Bearer ..."). It also finds
// them under up to 8 layers of JSON escapes, URL escapes, and JSON within JSON strings.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace telemetry_sqlite {

// Masks JSON, which may be truncated. Replaces each secret value with "***" and adds the number of
// masked values to *count. Does not copy the JSON if nothing is masked.
void mask_json(std::string *json, std::uint64_t *count);

// Masks text that may contain credentials or JSON. Adds the number of masked values to *count.
void mask_text(std::string *text, std::uint64_t *count);

// Masks the last word of text that was truncated, because it may be part of a credential. The word
// has at most 512 bytes, not counting escapes. If the text ends within the password of a URL, masks
// the whole password.
void mask_cut_end(std::string *text, std::uint64_t *count);

bool is_secret_name(std::string_view member_name);

}  // namespace telemetry_sqlite
