// What is in a file of the session database.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace record_store {

inline constexpr std::int32_t application_id = 0x42484442;  // "BHDB"
inline constexpr std::int32_t schema_version = 2;

// In mcp_calls.flags, beside the bits of a record (BH_RECORD_...), which are the low 16: the tool's
// result says isError, as far as its text was kept.
inline constexpr std::uint32_t flag_tool_error = 1u << 16;

// The whole of it as SQL that makes an empty file's tables, with what they are for as comments.
std::string_view schema_sql() noexcept;

// The tables whose rows are chained, in the order in which a file's schema has them. Each ends with
// the columns seq, prev and hash.
inline constexpr std::array<std::string_view, 8> chained_tables{
    "mcp_calls",       "call_intents",    "net_events", "fs_events",
    "snapshot_events", "security_events", "approvals",  "audit_marks"};

// That a file of another schema_version need not have.
inline constexpr std::array<std::string_view, 1> later_tables{"call_intents"};

}  // namespace record_store
