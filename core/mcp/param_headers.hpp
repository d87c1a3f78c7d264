// Checks and composes Mcp-Param-* headers. These HTTP headers mirror arguments of a tool call
// (revision 2026-07-28). The annotation x-mcp-header in the tool's inputSchema marks the arguments.
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

// An annotated property.
struct ParamHeader {
  std::string header;             // including the prefix: Mcp-Param-Region
  std::vector<std::string> path;  // property names, starting at the root of the arguments
  ParamType type = ParamType::string;
};

// A tool's annotations, sorted by path.
using ParamHeaders = std::vector<ParamHeader>;

// Limits per tool. If they are exceeded, the tool's annotations are invalid. A message has at most
// 64 headers; max_param_headers leaves room for the three headers in mirrored_headers.hpp.
inline constexpr std::size_t max_param_headers = 60;
inline constexpr std::size_t max_param_header_name = 128;  // in bytes, without the prefix

// Reads the annotations of an inputSchema (JSON text from a server). Returns an empty list if there
// are none. Returns BH_E_INVALID if
// - an annotation is not a token (RFC 9110), is too long, or occurs twice (ignoring case),
// - there are too many annotations,
// - the property's type is not exactly string, integer or boolean,
// - the property is reached through keywords other than `properties`,
// - the schema has an annotation, and any of its objects has duplicate members, or
// - the text is not JSON or has more than 128 levels.
// The message names the property, except in the last two cases.
// An x-mcp-header in data (default, const, enum, examples, unknown keywords) is not an annotation.
// Time and memory are linear in the size of the text.
Result<ParamHeaders> read_param_headers(std::string_view input_schema);

// Returns the inputSchema (validated JSON) without any annotation if read_param_headers() rejects
// it because of its annotations. All other bytes are unchanged, except for the commas and the white
// space around the annotations. Returns nullopt if the annotations are valid, if there are none, or
// if the text has more than 128 levels.
std::optional<std::string> without_invalid_param_headers(std::string_view input_schema);

// Compares the headers of tools/call with its arguments (params.arguments, or empty if omitted).
// Each annotated argument must have a header. Strings and booleans must be equal; numbers must have
// equal values. The argument's actual type is used, because only the server validates types. There
// must be no header for an argument that is missing, null, an object or an array. For an integer
// beyond +-(2^53-1), the header is optional. All other headers are ignored. It is also a fault if
// an annotated argument occurs twice, or if `arguments` is not JSON or is nested too deeply.
// `params` must be a result of read_param_headers().
std::optional<HeaderFault> check_param_headers(std::span<const ParamHeader> params,
                                               std::string_view arguments,
                                               std::span<const bh_header> headers);

// Adds the headers for the arguments of a request that the gateway sends, except for integers
// beyond +-(2^53-1). Returns a fault if an annotated argument occurs twice, because parsers
// disagree about its value, or if `arguments` is not JSON or is nested too deeply. `params` must be
// a result of read_param_headers().
std::optional<HeaderFault> add_param_headers(std::span<const ParamHeader> params,
                                             std::string_view arguments, HeaderList *out);

}  // namespace bulkhead::mcp
