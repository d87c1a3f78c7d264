// Defines the SQL schema of session database files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace record_store {

inline constexpr std::int32_t application_id = 0x42484442;  // "BHDB"
inline constexpr std::int32_t schema_version = 4;
// The oldest version of files that can be read and verified. New files are created with
// schema_version.
inline constexpr std::int32_t oldest_schema_version = 2;

// A bit in mcp_calls.flags, set if the recorded part of a tool's result has isError = true. The
// lower 16 bits are reserved for the BH_RECORD_* flags.
inline constexpr std::uint32_t flag_tool_error = 1u << 16;

// Returns the SQL, including comments, that creates all tables in an empty file.
std::string_view schema_sql() noexcept;
// Returns the SQL of an earlier version, or an empty string if that version is not supported.
std::string schema_sql(int version);
// A column that files with an earlier schema lack. It comes after the table's older columns and
// before its chain columns.
struct LaterColumn {
  std::string_view table, column;
};
// In schema order. Each version after oldest_schema_version added at least one column to mcp_calls.
inline constexpr std::array<LaterColumn, 5> later_columns{{{"mcp_calls", "claimed_name"},
                                                           {"mcp_calls", "client_revision"},
                                                           {"mcp_calls", "server_revision"},
                                                           {"call_intents", "claimed_name"},
                                                           {"approvals", "claimed_name"}}};

// The tables whose rows are chained, in schema order. The last columns of each table are seq, prev
// and hash.
inline constexpr std::array<std::string_view, 8> chained_tables{
    "mcp_calls",       "call_intents",    "net_events", "fs_events",
    "snapshot_events", "security_events", "approvals",  "audit_marks"};

// Tables that may be missing from files with another schema version.
inline constexpr std::array<std::string_view, 1> later_tables{"call_intents"};

}  // namespace record_store
