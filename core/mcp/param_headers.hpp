// Mcp-Param-* headers: arguments of a tool that an HTTP request mirrors in its headers (revision
// 2026-07-28). A tool's inputSchema names them with the annotation x-mcp-header.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "mcp/mirrored_headers.hpp"

namespace bulkhead::mcp {

enum class ParamType : std::uint8_t { string, integer, boolean };

// One annotated property.
struct ParamHeader {
  std::string header;             // with its prefix: Mcp-Param-Region
  std::vector<std::string> path;  // property names from the root of the arguments
  ParamType type = ParamType::string;
};

// The annotations of a tool, sorted by path.
using ParamHeaders = std::vector<ParamHeader>;

// Limits of a tool; beyond them its annotations are invalid.
inline constexpr std::size_t max_param_headers = 60;       // 64 headers less the other three
inline constexpr std::size_t max_param_header_name = 128;  // bytes, without the prefix

// Reads the annotations of an inputSchema (JSON text from a server). The result is empty if there
// are none. BH_E_INVALID, with a text that names the property: an annotation that is not a token
// (RFC 9110), is longer or more frequent than the limits, occurs twice (letter case aside), has a
// property whose type is not exactly string, integer or boolean, or is not reached through
// `properties` alone; annotations in an object with duplicate members; text that is not JSON or has
// more than 128 levels. Time and memory are linear in the text. An x-mcp-header in data (default,
// const, enum, examples, unknown keywords) is not an annotation.
Result<ParamHeaders> read_param_headers(std::string_view input_schema);

// Compares the headers of tools/call with its arguments (params.arguments; empty if absent). Each
// argument of an annotated property needs its header; strings and booleans must be equal, numbers
// equal in value. The argument's own type decides, since only the server validates it. An
// argument that is absent, null, an object or an array must have no header. An integer beyond
// +-(2^53-1) may have none. An annotated argument that occurs twice is a fault. Headers of other
// names are ignored. `params` are as read_param_headers() returns them, here and below.
std::optional<HeaderFault> check_param_headers(std::span<const ParamHeader> params,
                                               std::string_view arguments,
                                               std::span<const bh_header> headers);

// Adds the headers for the arguments of a request that the gateway sends. Returns a fault if an
// annotated argument occurs twice, since readers disagree about its value.
std::optional<HeaderFault> add_param_headers(std::span<const ParamHeader> params,
                                             std::string_view arguments, HeaderList *out);

}  // namespace bulkhead::mcp
