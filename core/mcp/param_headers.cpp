// Checks and composes the Mcp-Param-* headers of a request. The annotated arguments are found in a
// single pass.
#include "mcp/param_headers.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "bulkhead/cpp/json_reader.hpp"
#include "mcp/json_names.hpp"
#include "mcp/json_number.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::mcp {
namespace {

// The maximum length of a path. It is 64 because Argument::seen has one bit per level. The depth
// limit for schemas ensures that no path is longer.
constexpr std::size_t max_path = 64;
static_assert(bh::json::max_depth / 2 <= max_path);

struct Argument {
  std::string_view token;  // empty if missing; "{" for an object or array
  std::uint64_t seen = 0;  // one bit for each name of the path that has been found
  bool twice = false;
};
using Arguments = std::array<Argument, max_param_headers>;

// Finds the values of the annotated arguments. Skips objects that are not on their paths.
class ArgumentWalk {
 public:
  ArgumentWalk(std::span<const ParamHeader> params, Arguments *out) noexcept
      : params_(params.first(std::min(params.size(), out->size()))), out_(*out) {}

  void begin_object() {
    if (skipped_ > 0 || !opens_path()) {
      ++skipped_;
    } else {
      open_[depth_++] = next_;
    }
  }
  void begin_array() {
    if (skipped_ == 0) value("{");
    ++skipped_;
  }
  void end_object() { skipped_ > 0 ? --skipped_ : --depth_; }
  void end_array() { --skipped_; }
  void key(std::string_view token) {
    if (skipped_ == 0) next_ = params_with(token.substr(1, token.size() - 2));
  }
  void string(std::string_view token) { value(token); }
  void number(std::string_view token) { value(token); }
  void word(std::string_view token) { value(token); }

 private:
  struct Part {  // a range of params_, which is sorted by path
    std::size_t begin = 0, end = 0;
  };

  // Called at the start of an object. Returns true if the object may contain annotated arguments.
  bool opens_path() {
    if (depth_ == 0) {
      next_ = {0, params_.size()};
    } else {
      value("{");
      while (next_.begin < next_.end && params_[next_.begin].path.size() == depth_) ++next_.begin;
    }
    return next_.begin < next_.end && depth_ < open_.size();
  }

  // Returns the annotated arguments whose paths go through the member `name` of the innermost
  // object.
  Part params_with(std::string_view name) {
    const std::size_t index = depth_ - 1;  // index of the name in the paths
    Part part = open_[index];
    const auto has_name = [&](std::size_t i) {
      return json::same_text(name, params_[i].path[index]);
    };
    while (part.begin < part.end && !has_name(part.begin)) ++part.begin;
    std::size_t end = part.begin;
    for (; end < part.end && has_name(end); ++end) {
      out_[end].twice = out_[end].twice || (out_[end].seen >> index & 1) != 0;
      out_[end].seen |= std::uint64_t{1} << index;
    }
    return {part.begin, end};
  }

  void value(std::string_view token) {
    if (skipped_ > 0) return;
    for (std::size_t i = next_.begin; i < next_.end; ++i) {
      if (params_[i].path.size() == depth_) out_[i].token = token;
    }
  }

  const std::span<const ParamHeader> params_;
  Arguments &out_;
  std::array<Part, max_path> open_;  // the ranges of the open objects on the paths
  Part next_;                        // the range of the next value
  std::size_t depth_ = 0;            // number of open objects on the paths
  std::size_t skipped_ = 0;          // number of open objects and arrays that are not on the paths
};

std::string argument_text(const ParamHeader &param) {
  std::string out = "params.arguments";
  for (const std::string &name : param.path) out.append(".").append(name);
  return bh::one_line(out, 200);
}

HeaderFault fault_of(const ParamHeader &param, std::string_view reason) {
  return {param.header, argument_text(param).append(" ").append(reason)};
}

bool has_text(const Argument &argument) noexcept {
  return !argument.token.empty() && argument.token != "null" && argument.token != "{";
}

bool is_number(const Argument &argument) noexcept {
  return argument.token[0] == '-' || bh::is_digit(argument.token[0]);
}

// Returns true for an integer that some JSON libraries round. A client may omit the header for such
// an integer, and the gateway does not send one.
bool is_unsafe_integer(const Argument &argument) noexcept {
  if (!is_number(argument)) return false;
  const Decimal number(argument.token);
  return number.is_integer() && !number.safe_integer();
}

bool matches(std::string_view text, const Argument &argument) {
  if (argument.token[0] == '"') {
    return json::same_text(argument.token.substr(1, argument.token.size() - 2), text);
  }
  if (!is_number(argument)) return text == argument.token;
  return is_json_number(text) && Decimal(text) == Decimal(argument.token);
}

std::optional<HeaderFault> check_param(const ParamHeader &param, const Argument &argument,
                                       std::span<const bh_header> headers) {
  if (argument.twice) return fault_of(param, "occurs more than once");
  const FoundHeader found = find_header(headers, param.header);
  if (found.twice) return doubled_header(param.header);
  if (!has_text(argument)) {
    if (found.header == nullptr) return std::nullopt;
    return HeaderFault{param.header, "the header " + param.header + " must be absent: " +
                                         argument_text(param) + " has no value for it"};
  }
  if (found.header == nullptr) {
    if (is_unsafe_integer(argument)) return std::nullopt;
    return missing_header(param.header, argument_text(param));
  }
  std::string scratch;
  const HeaderText sent = decode_header_value(bh::view(found.header->value), &scratch);
  if (sent.problem != nullptr) return malformed_header(param.header, sent.problem);
  if (!matches(sent.text, argument)) return unequal_header(param.header, argument_text(param));
  return std::nullopt;
}

void add_param(const ParamHeader &param, const Argument &argument, HeaderList *out) {
  if (!has_text(argument) || is_unsafe_integer(argument)) return;
  if (argument.token[0] == '"') {
    std::string scratch;
    out->add(param.header, unquote(argument.token, &scratch));
    return;
  }
  const std::optional<std::int64_t> integer =
      is_number(argument) ? Decimal(argument.token).safe_integer() : std::nullopt;
  if (!integer) return out->add(param.header, argument.token);
  char digits[24];
  const char *const end = std::to_chars(digits, digits + sizeof digits, *integer).ptr;
  out->add(param.header, {digits, static_cast<std::size_t>(end - digits)});
}

// Calls f(param, argument) for each annotated argument. Stops at the first fault and returns it.
template <class F>
std::optional<HeaderFault> for_each_param(std::span<const ParamHeader> params,
                                          std::string_view arguments, F f) {
  if (params.empty()) return std::nullopt;
  Arguments found;
  ArgumentWalk walk(params, &found);
  if (!arguments.empty() && !bh::json::walk(arguments, walk)) {
    return HeaderFault{params[0].header, "params.arguments is not JSON, or is nested too deeply"};
  }
  for (std::size_t i = 0; i < std::min(params.size(), found.size()); ++i) {
    if (auto fault = f(params[i], found[i])) return fault;
  }
  return std::nullopt;
}

}  // namespace

std::optional<HeaderFault> check_param_headers(std::span<const ParamHeader> params,
                                               std::string_view arguments,
                                               std::span<const bh_header> headers) {
  return for_each_param(params, arguments, [&](const ParamHeader &p, const Argument &argument) {
    return check_param(p, argument, headers);
  });
}

std::optional<HeaderFault> add_param_headers(std::span<const ParamHeader> params,
                                             std::string_view arguments, HeaderList *out) {
  return for_each_param(params, arguments,
                        [&](const ParamHeader &p, const Argument &a) -> std::optional<HeaderFault> {
                          if (a.twice) return fault_of(p, "occurs more than once");
                          add_param(p, a, out);
                          return std::nullopt;
                        });
}

}  // namespace bulkhead::mcp
