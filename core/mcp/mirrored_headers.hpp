// The headers of an HTTP request that mirror values of its body (revision 2026-07-28):
// MCP-Protocol-Version, Mcp-Method and Mcp-Name. param_headers.hpp has Mcp-Param-*.
//
// Only requests have these headers; notifications are neither checked nor given any. Header names
// are compared without letter case, values with letter case and without outer white space.
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

// The code of a request whose headers do not match its body. HTTP status: 400.
inline constexpr std::int32_t header_mismatch = -32020;

// The mirrored values of one request, as text.
struct MirroredValues {
  std::optional<std::string_view> revision;  // params._meta[revision_meta_key]
  std::string_view method;
  std::optional<std::string_view> name;  // what Mcp-Name mirrors; depends on the method
  const char *name_member = "";          // the member of `params` that has it; static text
};

// Memory for values that have escapes in the message.
struct MirroredScratch {
  std::string revision, method, name;
};

// Reads the values of a scanned request. Mcp-Name mirrors params.name of tools/call and
// prompts/get, params.uri of resources/read, and params.taskId of tasks/get, tasks/update and
// tasks/cancel. A member that is absent or not a string has no value. The values borrow `message`
// and *scratch.
MirroredValues mirrored_values(std::string_view message, const Scan &scan,
                               MirroredScratch *scratch);

// A header that does not match the body, for an error with the code header_mismatch.
struct HeaderFault {
  std::string header;
  std::string text;  // the reason, for the client; has no value of Mcp-Name or Mcp-Param-*
};

// Compares the headers of a request with its body. The first fault is reported, in the order
// revision, method, name. A header without a value in the body is not compared: its caller rejects
// a body that has no revision, and a request without params.name or params.uri.
std::optional<HeaderFault> check_mirrored_headers(const MirroredValues &values,
                                                  std::span<const bh_header> headers);

// Adds the headers of a request that the gateway sends. `values` are those of the message as it is
// sent, so its name is the server's own.
void add_mirrored_headers(const MirroredValues &values, HeaderList *out);

// ---- for other headers of this kind -----------------------------------------------------------

// Searches for a header that may occur once.
struct FoundHeader {
  const bh_header *header = nullptr;  // the first one, if there is any
  bool twice = false;
};
FoundHeader find_header(std::span<const bh_header> headers, std::string_view name) noexcept;

// `member` is the place of the value in the body, such as params.name.
HeaderFault missing_header(std::string_view name, std::string_view member);
HeaderFault doubled_header(std::string_view name);
HeaderFault malformed_header(std::string_view name, const char *problem);
HeaderFault unequal_header(std::string_view name, std::string_view member);

}  // namespace bulkhead::mcp
