#include "mcp/scan.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "mcp/json_cursor.hpp"
#include "mcp/known_params.hpp"
#include "mcp/member_names.hpp"
#include "mcp/methods.hpp"
#include "mcp/request_meta_names.hpp"
#include "mcp/trace_context.hpp"

namespace bulkhead::mcp {
namespace {

using json::Cursor;
using json::KnownName;
using json::MemberNames;

constexpr std::int32_t not_json = -32700;
constexpr std::int32_t not_valid = -32600;

// The type of a JSON value, which is determined by the value's first byte. Types can be combined
// into a set.
enum Type : unsigned {
  string_type = 1,
  number_type = 2,
  object_type = 4,
  array_type = 8,
  null_type = 16,
  other_type = 32,
  any_type = 63
};

constexpr Type type_of(char first) noexcept {
  if (first == '"') return string_type;
  if (first == '{') return object_type;
  if (first == '[') return array_type;
  if (first == 'n') return null_type;
  return first == '-' || (first >= '0' && first <= '9') ? number_type : other_type;
}

// Returns true if the value is a number without fraction and exponent. [begin, end) must be a
// validated JSON value.
bool is_integer(const char *begin, const char *end) noexcept {
  return std::all_of(begin, end, [](char c) { return c == '-' || json::is_digit(c); });
}

enum EnvelopeName : int {
  jsonrpc_name,
  id_name,
  method_name,
  params_name,
  result_name,
  error_name
};
constexpr KnownName envelope_names[] = {"jsonrpc", "id", "method", "params", "result", "error"};

// Maps a member of params to its range and the accepted types. A member with another type counts as
// missing; users of the Scan decide whether the method requires it.
struct ParamRule {
  Range Scan::*range;
  unsigned types;
};
constexpr ParamRule param_rules[] = {{&Scan::meta, object_type},
                                     {nullptr, 0},
                                     {&Scan::name, string_type},
                                     {&Scan::uri, string_type},
                                     {&Scan::cursor, string_type},
                                     {&Scan::arguments, any_type},
                                     {&Scan::token, string_type | number_type},
                                     {&Scan::request_id, string_type | number_type},
                                     {&Scan::level, string_type},
                                     {&Scan::elicitation_id, string_type},
                                     {&Scan::protocol_version, string_type},
                                     {&Scan::capabilities, object_type},
                                     {&Scan::client_info, object_type},
                                     {&Scan::argument, any_type},
                                     {&Scan::context, any_type},
                                     {&Scan::task, object_type},
                                     {nullptr, 0},
                                     {nullptr, 0},
                                     {&Scan::task_id, string_type}};
static_assert(std::size(param_names) == std::size(param_rules));

enum RefName : int { ref_type_name, ref_name_name, ref_uri_name };
constexpr KnownName ref_names[] = {"type", "name", "uri"};
constexpr Range Scan::*ref_ranges[] = {&Scan::ref_type, &Scan::ref_name, &Scan::ref_uri};

enum MetaName : int { progress_token_name, first_request_name, first_trace_name = 5 };
constexpr KnownName meta_names[] = {
    "progressToken",       request_meta_names[0],  request_meta_names[1], request_meta_names[2],
    request_meta_names[3], {"traceparent", false}, {"tracestate", false}, {"baggage", false}};
constexpr ParamRule request_meta_rules[] = {{&Scan::meta_revision, string_type},
                                            {&Scan::meta_capabilities, object_type},
                                            {&Scan::meta_client_info, object_type},
                                            {&Scan::meta_log_level, string_type}};
static_assert(std::size(request_meta_rules) == std::size(request_meta_names) &&
              first_request_name + std::size(request_meta_rules) == first_trace_name);

// Performs a single scan. The parsing functions return false if the text is not JSON or is nested
// too deeply; the cursor then provides the reason. If the message is invalid for another reason,
// they call refuse() and continue the scan, because the message's ID may follow.
class Scanner {
 public:
  Scanner(std::string_view message, Scan *out, ScanError *error, const ScanLimits &limits) noexcept
      : cursor_(message),
        out_(out),
        error_(error),
        max_depth_(std::min(limits.max_depth, json::deepest)),
        max_members_(limits.max_members) {
    *out_ = {};
    *error_ = {};
  }

  bool run() noexcept {
    const bool ok = read_message();
    if (!ok) error_->seen_id = out_->id;
    return ok;
  }

 private:
  bool read_message() noexcept {
    cursor_.skip_space();
    if (cursor_.at_end()) return report(not_json, "the message is empty", cursor_.at());
    const char first = cursor_.peek();
    const bool read = first == '{' ? envelope() : other_value(first);
    if (!read) return report_fault();
    cursor_.skip_space();
    if (!cursor_.at_end()) {
      return report(not_json, "unexpected text after the message", cursor_.at());
    }
    if (first == '{') classify();
    if (!refused_) return true;
    if (may_return_id()) error_->id = out_->id;
    return false;
  }

  bool report(std::int32_t code, const char *what, const char *at) noexcept {
    *error_ = {code, what, offset(at), {}, {}};
    return false;
  }

  bool report_fault() noexcept {
    const json::Fault &fault = cursor_.fault();
    if (fault.what != json::too_deep) return report(not_json, fault.what, fault.at);
    report(not_valid, fault.what, fault.at);
    if (may_return_id()) error_->id = out_->id;
    return false;
  }

  void refuse(const char *what, const char *at) noexcept {
    if (!refused_) report(not_valid, what, at);
    refused_ = true;
  }

  // Returns true if the error response may contain the message's ID. The ID of a response is
  // excluded: it identifies a request that this side sent, so the peer could mistake the error for
  // a response to one of its own requests.
  bool may_return_id() const noexcept {
    return id_type_ != null_type && !id_unclear_ && (has_method_ || !(has_result_ || has_error_));
  }

  std::uint32_t offset(const char *at) const noexcept {
    return static_cast<std::uint32_t>(at - cursor_.begin());
  }

  bool keep_value(Range *range, std::uint32_t depth) noexcept {
    const std::uint32_t begin = offset(cursor_.at());
    if (!cursor_.value(depth)) return false;
    *range = {begin, offset(cursor_.at())};
    return true;
  }

  bool skip_value(std::uint32_t depth) noexcept { return cursor_.value(depth); }

  // Returns the maximum depth of a member's value in an object at `level`. The envelope is level 1.
  std::uint32_t below(std::uint32_t level) const noexcept { return max_depth_ - level; }

  bool other_value(char first) noexcept;
  template <class F>
  bool members(std::uint32_t level, MemberNames *names, F &&on_member) noexcept;
  bool envelope() noexcept;
  bool envelope_member(int which) noexcept;
  bool id() noexcept;
  bool method() noexcept;
  bool result() noexcept;
  void result_member(std::string_view name, Range member) noexcept;
  bool params() noexcept;
  bool param(int which) noexcept;
  bool meta() noexcept;
  bool progress_token() noexcept;
  bool trace(std::string_view name) noexcept;
  bool ref() noexcept;
  void classify() noexcept;
  void classify_call() noexcept;
  void classify_response() noexcept;

  Cursor cursor_;
  Scan *out_;
  ScanError *error_;
  std::uint32_t max_depth_;
  std::uint32_t max_members_;
  bool refused_ = false;
  bool id_unclear_ = false;
  bool has_jsonrpc_ = false;
  bool has_method_ = false;
  bool has_result_ = false;
  bool has_error_ = false;
  std::uint32_t seen_params_ = 0;
  std::uint32_t unknown_params_ = 0;
  unsigned id_type_ = 0;  // 0: no ID
};

bool Scanner::other_value(char first) noexcept {
  const char *start = cursor_.at();
  if (first == '\xEF') return cursor_.fail("a byte-order mark is not allowed");
  if (!skip_value(max_depth_)) return false;
  if (first != '[') {
    refuse("the message is not an object", start);
    return true;
  }
  out_->kind = Kind::batch;
  Cursor inside({start + 1, static_cast<std::size_t>(cursor_.at() - start - 1)});
  inside.skip_space();
  if (inside.peek() == ']') refuse("the batch is empty", start);
  return true;
}

// Parses the object at the cursor. Calls on_member(which) to parse the value of each known member;
// `which` is the index of its name. Other values are skipped.
template <class F>
bool Scanner::members(std::uint32_t level, MemberNames *names, F &&on_member) noexcept {
  if (level > max_depth_) return cursor_.fail(json::too_deep);
  cursor_.consume('{');
  cursor_.skip_space();
  bool more = !cursor_.consume('}');
  while (more) {
    std::string_view inside;
    if (!cursor_.key(&inside)) return false;
    const MemberNames::Found found = names->add(inside, cursor_.end());
    if (found.problem == nullptr) {
      if (!(found.known < 0 ? skip_value(below(level)) : on_member(found.known))) return false;
    } else {
      refuse(found.problem, inside.data() - 1);
      if (level == 1 && found.known == id_name) id_unclear_ = true;
      if (!skip_value(below(level))) return false;
    }
    if (!cursor_.separator('}', &more)) return false;
  }
  return true;
}

bool Scanner::envelope() noexcept {
  MemberNames names(envelope_names, std::size(envelope_names), max_members_);
  const bool read =
      members(1, &names, [this](int which) noexcept { return envelope_member(which); });
  out_->unknown_members = names.unknown();
  return read;
}

bool Scanner::envelope_member(int which) noexcept {
  switch (which) {
    case jsonrpc_name: {
      Range range;
      const char *start = cursor_.at();
      if (!keep_value(&range, below(1))) return false;
      has_jsonrpc_ = true;
      if (std::string_view(start, range.size()) != "\"2.0\"") {
        refuse("jsonrpc is not \"2.0\"", start);
      }
      return true;
    }
    case id_name:
      return id();
    case method_name:
      return method();
    case params_name:
      return params();
    case result_name:
      return result();
    default:
      has_error_ = true;
      if (cursor_.peek() != '{') refuse("error is not an object", cursor_.at());
      return keep_value(&out_->error, below(1));
  }
}

bool Scanner::id() noexcept {
  const char *start = cursor_.at();
  Range range;
  id_type_ = type_of(cursor_.peek());
  if (!keep_value(&range, below(1))) return false;
  if (is_integer(start, cursor_.at()) || id_type_ == string_type || id_type_ == null_type) {
    out_->id = range;
  } else {
    id_unclear_ = true;
    refuse("id is neither a string nor an integer", start);
  }
  return true;
}

bool Scanner::method() noexcept {
  const char *start = cursor_.at();
  has_method_ = true;
  if (type_of(cursor_.peek()) != string_type) {
    refuse("method is not a string", start);
    return skip_value(below(1));
  }
  if (!keep_value(&out_->method_text, 0)) return false;
  out_->method = method_of({start + 1, out_->method_text.size() - 2});
  return true;
}

// Locates members of the result, but rejects nothing: servers may use any names in results.
bool Scanner::result() noexcept {
  has_result_ = true;
  if (cursor_.peek() != '{') return keep_value(&out_->result, below(1));
  if (max_depth_ < 2) return cursor_.fail(json::too_deep);
  const char *start = cursor_.at();
  cursor_.consume('{');
  cursor_.skip_space();
  bool more = !cursor_.consume('}');
  while (more) {
    const std::uint32_t begin = offset(cursor_.at());
    std::string_view name;
    if (!cursor_.key(&name) || !skip_value(below(2))) return false;
    result_member(name, {begin, offset(cursor_.at())});
    if (!cursor_.separator('}', &more)) return false;
  }
  out_->result = {offset(start), offset(cursor_.at())};
  return true;
}

void Scanner::result_member(std::string_view name, Range member) noexcept {
  if (name.find('\\') != name.npos) out_->result_escapes = true;
  Range *range = name == "resultType"      ? &out_->result_type
                 : name == "ttlMs"         ? &out_->ttl_ms
                 : name == "cacheScope"    ? &out_->cache_scope
                 : name == "_meta"         ? &out_->result_meta
                 : name == "requestState"  ? &out_->request_state
                 : name == "inputRequests" ? &out_->input_requests
                                           : nullptr;
  if (range == nullptr) return;
  if (!range->empty()) out_->result_twice = true;
  *range = member;
}

bool Scanner::params() noexcept {
  const char *start = cursor_.at();
  if (cursor_.peek() != '{') {
    if (cursor_.peek() != '[') refuse("params is neither an object nor an array", start);
    return keep_value(&out_->params, below(1));
  }
  MemberNames names(param_names, std::size(param_names), max_members_);
  if (!members(2, &names, [this](int which) noexcept { return param(which); })) return false;
  seen_params_ = names.seen();
  unknown_params_ = names.unknown();
  out_->params = {offset(start), offset(cursor_.at())};
  return true;
}

bool Scanner::param(int which) noexcept {
  if (which == meta_param) return meta();
  if (which == ref_param) return ref();
  const ParamRule &rule = param_rules[which];
  if ((rule.types & type_of(cursor_.peek())) == 0) return skip_value(below(2));
  return keep_value(&(out_->*rule.range), below(2));
}

bool Scanner::meta() noexcept {
  const char *start = cursor_.at();
  if (cursor_.peek() != '{') {
    // If _meta is not an object, the gateway cannot add a member to it.
    refuse("params._meta is not an object", start);
    return skip_value(below(2));
  }
  MemberNames names(meta_names, std::size(meta_names), 0);
  const bool read = members(3, &names, [this](int which) noexcept {
    if (which == progress_token_name) return progress_token();
    if (which >= first_trace_name) return trace(meta_names[which].text);
    out_->modern = out_->modern || which == first_request_name;
    const ParamRule &rule = request_meta_rules[which - first_request_name];
    if ((rule.types & type_of(cursor_.peek())) == 0) return skip_value(below(3));
    return keep_value(&(out_->*rule.range), below(3));
  });
  if (!read) return false;
  constexpr std::uint32_t request_bits = ((1u << std::size(request_meta_rules)) - 1)
                                         << first_request_name;
  const auto others = static_cast<std::uint32_t>(std::popcount(names.seen() & ~request_bits));
  out_->meta_others = names.unknown() + others;
  out_->meta = {offset(start), offset(cursor_.at())};
  return true;
}

bool Scanner::progress_token() noexcept {
  const char *start = cursor_.at();
  const bool text = cursor_.peek() == '"';
  Range range;
  if (!keep_value(&range, below(3))) return false;
  if ((text || is_integer(start, cursor_.at())) && range.size() <= max_progress_token) {
    out_->progress_token = range;
  } else {
    out_->bad_progress_token = true;
  }
  return true;
}

bool Scanner::trace(std::string_view name) noexcept {
  Range value;
  if (!keep_value(&value, below(3))) return false;
  const std::string_view text(cursor_.begin() + value.begin, value.size());
  if (is_bad_trace(name, text)) ++out_->bad_traces;
  return true;
}

bool Scanner::ref() noexcept {
  if (cursor_.peek() != '{') return skip_value(below(2));
  MemberNames names(ref_names, std::size(ref_names), 0);
  const bool read = members(3, &names, [this](int which) noexcept {
    if (type_of(cursor_.peek()) != string_type) return skip_value(below(3));
    return keep_value(&(out_->*ref_ranges[which]), 0);
  });
  // A reference must not have both a name and a URI.
  const std::uint32_t both = 1u << ref_name_name | 1u << ref_uri_name;
  out_->extra_ref = names.unknown() != 0 || (names.seen() & both) == both;
  return read;
}

void Scanner::classify() noexcept {
  const char *end = cursor_.end();
  if (!has_jsonrpc_) refuse("jsonrpc is missing", end);
  if (has_method_) {
    classify_call();
  } else if (has_result_ || has_error_) {
    classify_response();
  } else {
    refuse("the message has no method, result or error", end);
  }
}

void Scanner::classify_call() noexcept {
  if (has_result_ || has_error_)
    refuse("the message has a method and also a result or an error", cursor_.end());
  out_->kind = id_type_ == 0 ? Kind::notification : Kind::request;
  if (id_type_ == null_type) refuse("the id of a request must not be null", cursor_.end());
  const MethodParams known = params_of(out_->method);
  if (out_->kind != Kind::request || known.named == 0) return;
  const std::uint32_t foreign = seen_params_ & ~(known.named | known.more);
  out_->unknown_params = unknown_params_ + static_cast<std::uint32_t>(std::popcount(foreign));
  out_->extra_params = out_->unknown_params != 0 || (seen_params_ & ~known.named) != 0 ||
                       (out_->extra_ref && (known.named & param_bit(ref_param)) != 0);
}

void Scanner::classify_response() noexcept {
  out_->kind = has_error_ ? Kind::error : Kind::result;
  if (has_result_ && has_error_)
    refuse("the message has both a result and an error", cursor_.end());
  if (!out_->params.empty()) ++out_->unknown_members;
  if (!has_result_) return;
  if (id_type_ == 0) refuse("a result has no id", cursor_.end());
  if (id_type_ == null_type) refuse("the id of a result must not be null", cursor_.end());
}

}  // namespace

bool scan(std::string_view message, Scan *out, ScanError *error,
          const ScanLimits &limits) noexcept {
  if (message.size() > std::numeric_limits<std::uint32_t>::max()) {
    *error = {not_valid, "the message is too long", 0, {}, {}};
    return false;
  }
  return Scanner(message, out, error, limits).run();
}

}  // namespace bulkhead::mcp
