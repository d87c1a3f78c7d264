// The schema of session database files.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace record_store {

inline constexpr std::int32_t application_id = 0x42484442;  // "BHDB"
inline constexpr std::int32_t schema_version = 3;
// Files of this version and later can be read and verified. New files have schema_version.
inline constexpr std::int32_t oldest_schema_version = 2;

// A flag of mcp_calls.flags above the 16 bits of a record (BH_RECORD_...): the recorded part of the
// tool's result contains isError.
inline constexpr std::uint32_t flag_tool_error = 1u << 16;

// Returns the SQL, with comments, that creates all tables in an empty file.
std::string_view schema_sql() noexcept;
// Returns the same SQL for an earlier version, or an empty string if that version is not supported.
std::string schema_sql(int version);
// A column that files of schema 2 lack, and the tables that have it. The column precedes the chain
// columns.
inline constexpr std::string_view later_column = "claimed_name";
inline constexpr std::array<std::string_view, 3> tables_with_later_column{
    "mcp_calls", "call_intents", "approvals"};

// The tables whose rows are chained, in schema order. The last columns of each table are seq, prev
// and hash.
inline constexpr std::array<std::string_view, 8> chained_tables{
    "mcp_calls",       "call_intents",    "net_events", "fs_events",
    "snapshot_events", "security_events", "approvals",  "audit_marks"};

// Tables that files of other schema versions may lack.
inline constexpr std::array<std::string_view, 1> later_tables{"call_intents"};

}  // namespace record_store
