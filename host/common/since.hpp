// Times in the session database: parses --since and formats timestamps for people.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bulkhead::program {

inline constexpr const char *since_usage =
    "--since must be a duration such as 30s, 10m, 2h or 1d, or a time such as 2026-01-31T12:00:00Z";

// Returns the time (local time if it has no offset) as a UTC timestamp that can be compared with
// those in the session database, or nullopt if the string is not a time.
std::optional<std::string> since_text(std::string_view since);

// Formats a timestamp from the session database ("2026-01-31T12:00:00.123Z") as "2026-01-31
// 13:00:00.123" in local time, or with a "Z" in UTC. Other strings are returned unchanged.
std::string shown_time(std::string_view timestamp, bool utc);

}  // namespace bulkhead::program
