// Parses the value of --since and formats timestamps from the session database.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::program {

inline constexpr const char *since_usage =
    "--since must be a duration such as 30s, 10m, 2h or 1d, or a time such as 2026-01-31T12:00:00Z";

// Converts the value of --since to a UTC timestamp that can be compared with those in the session
// database. A time without an offset is local time. Returns nullopt if the value is invalid.
std::optional<std::string> since_text(std::string_view since);

// Formats a timestamp from the session database, such as "2026-01-31T12:00:00.123Z". The result is
// "2026-01-31 13:00:00.123" in local time, or "2026-01-31 12:00:00.123Z" if `utc` is true. Strings
// that are not timestamps are returned unchanged.
std::string shown_time(std::string_view timestamp, bool utc);

}  // namespace bulkhead::program
