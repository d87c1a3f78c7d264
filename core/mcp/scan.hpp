// The message scanner: a single validating pass over a JSON-RPC message, which returns the byte
// ranges that routing needs. A message is normally not rebuilt: it is forwarded by splicing values
// between its ranges.
//
// The scanner validates JSON (RFC 8259): the grammar, the nesting depth, UTF-8 (RFC 3629: no
// surrogates, no overlong forms) and \u escapes. A lone surrogate escape is legal JSON and is
// accepted. A byte-order mark, and any text other than white space after the value, are rejected.
// Numbers are validated but never converted: 1e400 and -0.0 are accepted and remain unchanged.
//
// In the envelope and in `params`, ambiguous member names are rejected (JSON-RPC error -32600), so
// that no member has different meanings for a policy and a server. Names are ambiguous if they are
// equal, or if they differ only in case from each other or from a known name. They are compared
// after unescaping. ASCII case is ignored, and so are U+017F and U+212A, which some decoders fold
// to s and k. In params._meta and params.ref, only names that Scan lists must be unambiguous; of
// traceparent, tracestate and baggage, variants in another case are accepted as unknown members.
// (Names are compared by a 64-bit hash; different names with equal hashes are rejected too.)
//
// Thread-safe. scan() never allocates. A Scan contains offsets and no pointers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead::mcp {

// A half-open byte range in the scanned message. Empty if the value is missing; no JSON value is
// empty.
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
  notification,  // method without id
  result,        // result and id
  error,         // error; id may be null or missing
  batch          // a JSON array; see for_each_element()
};

// The methods that the gateway knows. All other methods are `other`.
enum class Method : std::uint8_t {
  none,  // a response or a batch
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
  tasks_get,
  tasks_result,
  tasks_list,
  tasks_update,
  tasks_cancel,
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
  notifications_tasks,
  notifications_tasks_status,
  notifications_subscriptions_acknowledged
};

std::string_view to_string(Method method) noexcept;

// The range of a string includes its quotes, and the range of an object its braces.
struct Scan {
  Kind kind = Kind::request;
  Method method = Method::none;
  Range id;           // string or integer token; if kind is `error`, may be null
  Range method_text;  // string
  Range params;       // object or array; may be missing
  Range result;
  Range error;
  // The number of unknown members of the envelope. The known members are jsonrpc, id, method and
  // params in a request, and jsonrpc, id, and result or error in a response.
  std::uint32_t unknown_members = 0;

  // Members of `params`, for all methods. A range is empty if the member is missing or has a
  // different type than listed here. A `_meta` that is not an object is rejected.
  Range name;              // string
  Range uri;               // string
  Range cursor;            // string
  Range arguments;         // any value
  Range meta;              // _meta: object
  Range progress_token;    // params._meta.progressToken: string or integer
  Range token;             // params.progressToken (notifications/progress): string or number
  Range request_id;        // params.requestId (notifications/cancelled): string or number
  Range level;             // string
  Range elicitation_id;    // params.elicitationId: string
  Range ref_type;          // params.ref.type: string
  Range ref_name;          // params.ref.name: string
  Range ref_uri;           // params.ref.uri: string
  Range protocol_version;  // params.protocolVersion: string
  Range capabilities;      // params.capabilities: object
  Range client_info;       // params.clientInfo: object
  Range argument;          // any value
  Range context;           // any value
  Range task;              // params.task (2025-11-25): object
  Range task_id;           // params.taskId: string
  // Members of params._meta in requests of MCP 2026-07-28. A range is empty if the member is
  // missing or has a different type than listed here.
  Range meta_revision;      // io.modelcontextprotocol/protocolVersion: string
  Range meta_capabilities;  // .../clientCapabilities: object
  Range meta_client_info;   // .../clientInfo: object
  Range meta_log_level;     // .../logLevel: string
  bool modern = false;      // params._meta has .../protocolVersion, with any value
  // The number of members of params._meta other than the four io.modelcontextprotocol/ members.
  std::uint32_t meta_others = 0;
  // True if params._meta.progressToken has an invalid type or more than max_progress_token bytes.
  // scan() accepts such a message; the caller must reject it.
  bool bad_progress_token = false;
  // The number of invalid values among traceparent, tracestate and baggage in params._meta.
  std::uint8_t bad_traces = 0;

  // The number of members of `params` that MCP's schema does not define for the method. Counted
  // only for requests that are forwarded to servers: tools/call, resources/read,
  // resources/subscribe, resources/unsubscribe, prompts/get, completion/complete, tasks/get,
  // tasks/result, tasks/update and tasks/cancel.
  std::uint32_t unknown_params = 0;
  // Set only for requests that are forwarded to servers: `params` has a member other than _meta and
  // the method's own members among name, arguments, uri, ref, argument, context and taskId, or
  // extra_ref is set and the method has a `ref`.
  bool extra_params = false;
  // For any method: params.ref has unknown members, or both a name and a URI.
  bool extra_ref = false;

  // Members of `result` that are new in revision 2026-07-28 or have a new meaning in it. Each range
  // includes the member's name and value. Names with escape sequences are not recognized.
  Range result_type;          // resultType
  Range ttl_ms;               // ttlMs
  Range cache_scope;          // cacheScope
  Range result_meta;          // _meta
  Range request_state;        // requestState
  Range input_requests;       // inputRequests
  bool result_twice = false;  // one of these names occurs twice
  // The name of a member of `result` has an escape sequence, so it may be one of these names.
  bool result_escapes = false;

  bool has_to_drop() const noexcept { return unknown_members != 0 || bad_traces != 0; }
};

// Maximum size of a progress token in bytes, including quotes.
inline constexpr std::uint32_t max_progress_token = 258;

struct ScanError {
  // JSON-RPC error code: -32700 (not JSON or not UTF-8) or -32600 (invalid message)
  std::int32_t code = 0;
  const char *what = "";     // the reason, as a static string
  std::uint32_t offset = 0;  // byte offset of the error
  // The request's ID. Empty if it could not be read, if the message is not JSON (-32700) or is a
  // response, or if there are two IDs.
  Range id;
  // The ID if it could be read, even from an invalid response. Used to find the request to which an
  // invalid response belongs; never sent in an error.
  Range seen_id;
};

struct ScanLimits {
  std::uint32_t max_depth = 128;    // at most 1,024; deeper messages are rejected with -32600
  std::uint32_t max_members = 256;  // at most 256; applies to the envelope and to params
};

// Scans a message of at most 2^32-1 bytes. Returns true and sets *out, or returns false and sets
// *error.
bool scan(std::string_view message, Scan *out, ScanError *error,
          const ScanLimits &limits = {}) noexcept;

// Returns the message without the members that are counted in unknown_members and bad_traces and,
// if `unknown_params` is set, in Scan::unknown_params. All other values are unchanged. Must not be
// called for batches. Allocates.
std::string without_dropped_members(std::string_view message, const Scan &scan,
                                    bool unknown_params = false);

// Returns a JSON object with the members of `params` that Scan::extra_params and Scan::extra_ref
// report. Their values are unchanged; `ref` is copied with all of its members. Returns an empty
// string if there are no such members. Allocates only if there are any.
std::string extra_params(std::string_view message, const Scan &scan);

// Returns the names of the members that Scan::unknown_params counts, in the form: "a", "b", "c" and
// 2 more. Allocates.
std::string unknown_param_names(std::string_view message, const Scan &scan);

// Calls f(arg, element) for each element of a batch. Stops and returns false if f returns false.
bool for_each_element(std::string_view batch, void *arg,
                      bool (*f)(void *arg, std::string_view element)) noexcept;

// Validates JSON text as scan() does, but accepts any value, does not locate members and does not
// check their names. max_depth is at most 1,024.
bool valid_json(std::string_view text, std::uint32_t max_depth = 128) noexcept;

// Returns true if an object at any depth of this validated JSON value has two members with the same
// name. Names are compared after unescaping.
bool has_duplicate_members(std::string_view json);

// Returns the text of a JSON string token (with quotes). If it has escape sequences, it is
// unescaped into *scratch; otherwise the result points into the token. A lone surrogate becomes
// U+FFFD.
std::string_view unquote(std::string_view token, std::string *scratch);

// Returns the value of a member of a validated JSON object, or an empty view if the member is
// missing. Does not search nested objects.
std::string_view member(std::string_view object, std::string_view key) noexcept;

// Calls f for each element of a validated JSON array. Stops and returns false if f returns false.
bool for_each_item(std::string_view array, void *arg,
                   bool (*f)(void *arg, std::string_view item)) noexcept;

// Calls f for each member of a validated JSON object. `key` is the name with quotes. Stops and
// returns false if f returns false.
bool for_each_member(std::string_view object, void *arg,
                     bool (*f)(void *arg, std::string_view key, std::string_view value)) noexcept;

}  // namespace bulkhead::mcp
