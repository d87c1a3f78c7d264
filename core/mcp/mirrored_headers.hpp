// Checks and composes the HTTP headers that mirror values from a request's body (revision
// 2026-07-28): MCP-Protocol-Version, Mcp-Method and Mcp-Name. For Mcp-Param-*, see
// param_headers.hpp.
//
// Only requests have these headers. The headers of notifications are not checked, and no headers
// are added to notifications. Header names are case-insensitive. Values are case-sensitive, and
// white space around them is ignored.
//
// Thread-safe.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "bulkhead/abi/core.h"
#include "mcp/header_list.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::mcp {

inline constexpr std::string_view revision_header = "MCP-Protocol-Version";
inline constexpr std::string_view method_header = "Mcp-Method";
inline constexpr std::string_view name_header = "Mcp-Name";
inline constexpr std::string_view revision_meta_key = "io.modelcontextprotocol/protocolVersion";

// The JSON-RPC error code for headers that do not match the body. The HTTP status is 400.
inline constexpr std::int32_t header_mismatch = -32020;

struct MirroredValues {
  std::optional<std::string_view> revision;  // params._meta[revision_meta_key]
  std::string_view method;
  std::optional<std::string_view> name;  // the value for Mcp-Name, which depends on the method
  const char *name_member = "";          // the member of `params` that contains it; static string
};

// Buffers for values that must be unescaped.
struct MirroredScratch {
  std::string revision, method, name;
};

// Reads the values for the mirrored headers from a scanned request. The value for Mcp-Name is
// params.name for tools/call and prompts/get, params.uri for resources/read, and params.taskId for
// tasks/get, tasks/update and tasks/cancel. If a member is missing or not a string, its value is
// empty. The values point into `message` and *scratch.
MirroredValues mirrored_values(std::string_view message, const Scan &scan,
                               MirroredScratch *scratch);

// Describes a header that does not match the body, for an error response with the code
// header_mismatch.
struct HeaderFault {
  std::string header;
  std::string text;  // the reason, for the client; contains no values of Mcp-Name or Mcp-Param-*
};

// Compares the headers of a request with its body. If several do not match, the fault is the first
// one in the order revision, method, name. A header is not compared if the body does not contain
// its value: the caller rejects requests without a revision, and requests that need params.name or
// params.uri but do not have it.
std::optional<HeaderFault> check_mirrored_headers(const MirroredValues &values,
                                                  std::span<const bh_header> headers);

// Adds the mirrored headers to a request that the gateway sends. `values` must be read from the
// message that is sent, which contains the server's original names.
void add_mirrored_headers(const MirroredValues &values, HeaderList *out);

// ---- for param_headers.cpp ---------------------------------------------------------------------

// The result of a search for a header that may occur only once.
struct FoundHeader {
  const bh_header *header = nullptr;  // the first one; null if there is none
  bool twice = false;
};
FoundHeader find_header(std::span<const bh_header> headers, std::string_view name) noexcept;

// `member` is the location of the value in the body, such as "params.name".
HeaderFault missing_header(std::string_view name, std::string_view member);
HeaderFault doubled_header(std::string_view name);
HeaderFault malformed_header(std::string_view name, const char *problem);
HeaderFault unequal_header(std::string_view name, std::string_view member);

}  // namespace bulkhead::mcp
