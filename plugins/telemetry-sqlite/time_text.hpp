#pragma once

#include <cstdint>
#include <string>

namespace telemetry_sqlite {

// Returns a UTC timestamp such as "2026-11-22T11:22:33.456Z".
std::string time_text(std::uint64_t unix_ns);

}  // namespace telemetry_sqlite
