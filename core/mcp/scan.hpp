// The message scanner: one validating pass over a JSON-RPC message that returns the byte ranges
// needed for routing. Messages are never rebuilt; forwarding splices values between these ranges.
//
// The pass validates (RFC 8259): grammar, UTF-8 (RFC 3629, no surrogates, no overlong forms), \u
// escapes (a lone surrogate escape is legal JSON and accepted), no byte-order mark, only white
// space after the value, nesting depth. Numbers are validated as tokens and never converted: 1e400
// and -0.0 are accepted unchanged.
//
// In the envelope and in `params`, ambiguous names are rejected (JSON-RPC error -32600), because a
// member must not have different meanings for a policy and a server. Ambiguous names are
// duplicates, and names that differ only in case from another name or from a known name (after
// unescaping; ASCII case plus U+017F and U+212A, which some decoders fold to s and k). In
// params._meta and params.ref, the rule applies only to the members named in Scan. (Names are
// compared by a 64-bit hash; different names with equal hashes are also rejected.)
//
// Thread-safe. A Scan contains only offsets and borrows nothing. Never allocates.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::mcp {

// Half-open byte range in the scanned message. An empty range means absent, because no JSON value
// is empty.
struct Range {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  bool empty() const noexcept { return begin == end; }
  std::uint32_t size() const noexcept { return end - begin; }
  std::string_view in(std::string_view message) const noexcept {
    return message.substr(begin, end - begin);
  }
};

enum class Kind : std::uint8_t {
  request,       // method and id
  notification,  // method, no id
  result,        // result and id
  error,         // error (id may be null or absent)
  batch          // a JSON array; see for_each_element()
};

// Methods that the gateway knows. All other methods are `other`.
enum class Method : std::uint8_t {
  none,  // responses
  other,
  initialize,
  ping,
  server_discover,
  tools_list,
  tools_call,
  resources_list,
  resources_templates_list,
  resources_read,
  resources_subscribe,
  resources_unsubscribe,
  prompts_list,
  prompts_get,
  completion_complete,
  logging_set_level,
  roots_list,
  sampling_create_message,
  elicitation_create,
  subscriptions_listen,
  notifications_initialized,
  notifications_cancelled,
  notifications_progress,
  notifications_message,
  notifications_resources_updated,
  notifications_tools_list_changed,
  notifications_resources_list_changed,
  notifications_prompts_list_changed,
  notifications_roots_list_changed,
  notifications_elicitation_complete,
  notifications_subscriptions_acknowledged
};

std::string_view to_string(Method method) noexcept;

// Ranges of strings include the quotes; ranges of objects include the braces.
struct Scan {
  Kind kind = Kind::request;
  Method method = Method::none;
  Range id;           // string or integer token; for Kind::error also `null`
  Range method_text;  // the string, with quotes
  Range params;       // object or array; may be absent
  Range result;
  Range error;
  // Number of unknown members of the envelope: all except jsonrpc, id, method and params, or (in a
  // response) all except jsonrpc, id, and result or error.
  std::uint32_t unknown_members = 0;

  // Direct members of `params`, for all methods. A range is empty if the member is absent or has
  // another type than stated here. A `_meta` that is not an object is rejected.
  Range name;              // string
  Range uri;               // string
  Range cursor;            // string
  Range arguments;         // any value
  Range meta;              // _meta, object
  Range progress_token;    // params._meta.progressToken: string or integer
  Range token;             // params.progressToken (notifications/progress): string, number
  Range request_id;        // params.requestId (notifications/cancelled): string, number
  Range level;             // string
  Range elicitation_id;    // params.elicitationId
  Range ref_type;          // params.ref.type
  Range ref_name;          // params.ref.name
  Range ref_uri;           // params.ref.uri
  Range protocol_version;  // params.protocolVersion, string
  Range capabilities;      // params.capabilities, object
  Range client_info;       // params.clientInfo, object
  Range argument;          // any value
  Range context;           // any value
  // Members of params._meta of a request of MCP 2026-07-28, with the types stated here.
  Range meta_revision;      // io.modelcontextprotocol/protocolVersion, string
  Range meta_capabilities;  // .../clientCapabilities, object
  Range meta_client_info;   // .../clientInfo, object
  Range meta_log_level;     // .../logLevel, string
  bool modern = false;      // params._meta has .../protocolVersion, with any value
  // params._meta.progressToken has an invalid type or more than max_progress_token bytes. Such a
  // message is rejected.
  bool bad_progress_token = false;
  // Number of invalid values among traceparent, tracestate and baggage in params._meta.
  std::uint8_t bad_traces = 0;

  // Number of members of `params` that MCP's schema does not define for the method. It is 0 for
  // requests that are not forwarded to servers. (Forwarded requests are tools/call, resources/read,
  // subscribe and unsubscribe, prompts/get, and completion/complete.)
  std::uint32_t unknown_params = 0;
  // For the same requests. extra_params: params has members other than name, arguments, uri, ref,
  // argument, context and _meta (as far as the method has them). extra_ref: `ref` has unknown
  // members, or both name and uri.
  bool extra_params = false;
  bool extra_ref = false;

  // Direct members of a `result` that revision 2026-07-28 has and earlier revisions have not, or
  // give other meanings: each from its name to the end of its value. Only names without escapes are
  // recognized.
  Range result_type;          // resultType
  Range ttl_ms;               // ttlMs
  Range cache_scope;          // cacheScope
  Range result_meta;          // _meta
  bool result_twice = false;  // one of these names occurs twice

  bool has_to_drop() const noexcept { return unknown_members != 0 || bad_traces != 0; }
};

// Maximum size of a progress token in bytes, including quotes.
inline constexpr std::uint32_t max_progress_token = 258;

struct ScanError {
  std::int32_t code = 0;     // JSON-RPC: -32700 not JSON (or not UTF-8), -32600 invalid message
  const char *what = "";     // the reason, as static text
  std::uint32_t offset = 0;  // position of the error in bytes
  Range id;                  // the request's id if it could be read; always empty with -32700, for
                             // responses, and if there are two ids
  Range seen_id;             // the id token if it was read, even from an invalid response; used to
                             // find the request that it belongs to; never sent in an error
};

struct ScanLimits {
  std::uint32_t max_depth = 128;    // at most 1,024; deeper messages are rejected with -32600
  std::uint32_t max_members = 256;  // per object, in the envelope and in params; at most 256
};

// Scans one message of at most 2^32-1 bytes. Returns true and sets *out, or returns false and sets
// *error.
bool scan(std::string_view message, Scan *out, ScanError *error,
          const ScanLimits &limits = {}) noexcept;

// Returns the message without its unknown_members and bad_traces and, if `unknown_params` is set,
// without its unknown params. All other values are unchanged. Not for batches. Allocates.
std::string without_dropped_members(std::string_view message, const Scan &scan,
                                    bool unknown_params = false);

// Returns the members that extra_params reports as a JSON object, unchanged; `ref` is complete.
// Returns an empty string if there are none. Allocates only if there are such members.
std::string extra_params(std::string_view message, const Scan &scan);

// Returns the names that unknown_params counts, as text: "a", "b", "c" and 2 more. Allocates.
std::string unknown_param_names(std::string_view message, const Scan &scan);

// Calls f(std::string_view element) for each element of a message of Kind::batch. Stops and returns
// false if f returns false.
bool for_each_element(std::string_view batch, void *arg,
                      bool (*f)(void *arg, std::string_view element)) noexcept;

// Validates JSON text by the same rules, without locating members. max_depth is at most 1,024.
bool valid_json(std::string_view text, std::uint32_t max_depth = 128) noexcept;

// Returns true if any object in this validated JSON value, at any depth, has a duplicate member
// name. Names are compared after unescaping.
bool has_duplicate_members(std::string_view json);

// Returns the text of a JSON string token (with quotes). If the token has escapes, it is unescaped
// into *scratch; otherwise the result is a view into the token. A lone surrogate becomes U+FFFD.
std::string_view unquote(std::string_view token, std::string *scratch);

// Returns the value of a direct member of a validated JSON object, or an empty view if it is
// absent.
std::string_view member(std::string_view object, std::string_view key) noexcept;

// Calls f for each element of a validated JSON array. Stops and returns false if f returns false.
bool for_each_item(std::string_view array, void *arg,
                   bool (*f)(void *arg, std::string_view item)) noexcept;

// Calls f for each member of a validated JSON object; key is the token with quotes. Stops and
// returns false if f returns false.
bool for_each_member(std::string_view object, void *arg,
                     bool (*f)(void *arg, std::string_view key, std::string_view value)) noexcept;

}  // namespace bulkhead::mcp
