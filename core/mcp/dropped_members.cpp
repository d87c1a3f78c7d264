// Implements three functions of scan.hpp: one removes members that must not be forwarded, and two
// collect the extra and unknown members of `params`.
#include <string>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/known_params.hpp"
#include "mcp/scan.hpp"
#include "mcp/trace_context.hpp"

namespace bulkhead::mcp {
namespace {

// Returns a copy of a validated JSON object without the members for which `keep` returns false. The
// other members are unchanged, except for the white space around them.
template <class F>
std::string filtered(std::string_view object, F keep) {
  struct Rest {
    F &keep;
    std::string text = "{";
  } rest{keep};
  for_each_member(object, &rest, [](void *arg, std::string_view key, std::string_view value) {
    auto &out = *static_cast<Rest *>(arg);
    if (!out.keep(key, value)) return true;
    if (out.text.size() > 1) out.text += ',';
    out.text.append(key).append(":").append(value);
    return true;
  });
  return std::move(rest.text) + "}";
}

std::string params_left(std::string_view message, const Scan &scan, bool without_unknown) {
  std::string params(scan.params.in(message));
  if (scan.bad_traces != 0) {
    params.replace(
        scan.meta.begin - scan.params.begin, scan.meta.size(),
        filtered(scan.meta.in(message), [](std::string_view key, std::string_view value) {
          return !is_bad_trace(key.substr(1, key.size() - 2), value);
        }));
  }
  if (!without_unknown || scan.unknown_params == 0) return params;
  const MethodParams known = params_of(scan.method);
  return filtered(params, [&](std::string_view key, std::string_view) {
    return is_param(key, known.named | known.more);
  });
}

}  // namespace

std::string without_dropped_members(std::string_view message, const Scan &scan,
                                    bool unknown_params) {
  const bool call = scan.kind == Kind::request || scan.kind == Kind::notification;
  const std::string params = call ? params_left(message, scan, unknown_params) : std::string();
  const struct {
    std::string_view name, value;
  } members[] = {{",\"id\":", scan.id.in(message)},
                 {",\"method\":", scan.method_text.in(message)},
                 {",\"params\":", params},
                 {",\"result\":", scan.result.in(message)},
                 {",\"error\":", scan.error.in(message)}};
  std::string out = R"({"jsonrpc":"2.0")";
  out.reserve(message.size() + out.size());
  for (const auto &member : members) {
    if (!member.value.empty()) out.append(member.name).append(member.value);
  }
  return out += '}';
}

std::string extra_params(std::string_view message, const Scan &scan) {
  if (!scan.extra_params) return {};
  std::uint32_t named = params_of(scan.method).named;
  if (scan.extra_ref) named &= ~param_bit(ref_param);
  return filtered(scan.params.in(message), [named](std::string_view key, std::string_view) {
    return !is_param(key, named);
  });
}

std::string unknown_param_names(std::string_view message, const Scan &scan) {
  constexpr std::size_t most = 3, most_bytes = 64;
  const MethodParams known = params_of(scan.method);
  std::string out, scratch;
  std::size_t count = 0;
  filtered(scan.params.in(message), [&](std::string_view key, std::string_view) {
    if (is_param(key, known.named | known.more)) return false;
    if (count++ < most) {
      const std::string_view name = unquote(key, &scratch);
      const std::string_view shown = bh::cut_text(name, most_bytes);
      out.append(out.empty() ? "" : ", ");
      bh::json::append_quoted(&out, std::string(shown) + (shown.size() < name.size() ? "..." : ""));
    }
    return false;
  });
  if (count > most) out += " and " + std::to_string(count - most) + " more";
  return out;
}

}  // namespace bulkhead::mcp
