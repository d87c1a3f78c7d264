#include "mcp/mirrored_headers.hpp"

#include "bulkhead/cpp/text.hpp"
#include "mcp/json_names.hpp"

namespace bulkhead::mcp {
namespace {

constexpr std::size_t most_value_shown = 64;  // limit for values in error messages, in bytes
constexpr std::string_view meta_member =
    "params._meta[\"io.modelcontextprotocol/protocolVersion\"]";

struct NameMember {
  std::string_view token;
  const char *member = "";
};

NameMember name_member_of(std::string_view message, const Scan &scan) {
  switch (scan.method) {
    case Method::tools_call:
    case Method::prompts_get:
      return {scan.name.in(message), "params.name"};
    case Method::resources_read:
      return {scan.uri.in(message), "params.uri"};
    case Method::tasks_get:
    case Method::tasks_update:
    case Method::tasks_cancel:
      return {scan.task_id.in(message), "params.taskId"};
    default:
      return {};
  }
}

std::optional<std::string_view> text_of(std::string_view token, std::string *scratch) {
  if (!token.starts_with('"')) return std::nullopt;
  return unquote(token, scratch);
}

// Compares `value` with a header whose value is never encoded.
std::optional<HeaderFault> check_plain(std::span<const bh_header> headers, std::string_view name,
                                       std::string_view member, std::string_view value) {
  const FoundHeader found = find_header(headers, name);
  if (found.header == nullptr) return missing_header(name, member);
  if (found.twice) return doubled_header(name);
  const std::string_view sent = trimmed_header_value(bh::view(found.header->value));
  if (sent == value) return std::nullopt;
  HeaderFault fault = unequal_header(name, member);
  fault.text.append(": ").append(bh::in_quotes(bh::one_line(sent, most_value_shown)));
  fault.text.append(" and ").append(bh::in_quotes(bh::one_line(value, most_value_shown)));
  return fault;
}

std::optional<HeaderFault> check_name(std::span<const bh_header> headers,
                                      const MirroredValues &values) {
  const FoundHeader found = find_header(headers, name_header);
  if (found.header == nullptr) return missing_header(name_header, values.name_member);
  if (found.twice) return doubled_header(name_header);
  std::string scratch;
  const HeaderText sent = decode_header_value(bh::view(found.header->value), &scratch);
  if (sent.problem != nullptr) return malformed_header(name_header, sent.problem);
  if (sent.text != *values.name) return unequal_header(name_header, values.name_member);
  return std::nullopt;
}

HeaderFault fault(std::string_view header, std::initializer_list<std::string_view> parts) {
  HeaderFault out{std::string(header), {}};
  for (const std::string_view part : parts) out.text.append(part);
  return out;
}

}  // namespace

MirroredValues mirrored_values(std::string_view message, const Scan &scan,
                               MirroredScratch *scratch) {
  MirroredValues out;
  out.revision = text_of(member(scan.meta.in(message), revision_meta_key), &scratch->revision);
  out.method = unquote(scan.method_text.in(message), &scratch->method);
  const NameMember name = name_member_of(message, scan);
  out.name = text_of(name.token, &scratch->name);
  out.name_member = name.member;
  return out;
}

std::optional<HeaderFault> check_mirrored_headers(const MirroredValues &values,
                                                  std::span<const bh_header> headers) {
  if (values.revision) {
    auto fault = check_plain(headers, revision_header, meta_member, *values.revision);
    if (fault) return fault;
  }
  if (auto fault = check_plain(headers, method_header, "method", values.method)) return fault;
  return values.name ? check_name(headers, values) : std::nullopt;
}

void add_mirrored_headers(const MirroredValues &values, HeaderList *out) {
  if (values.revision) out->add(revision_header, *values.revision);
  out->add(method_header, values.method);
  if (values.name) out->add(name_header, *values.name);
}

FoundHeader find_header(std::span<const bh_header> headers, std::string_view name) noexcept {
  FoundHeader found;
  for (const bh_header &header : headers) {
    if (!bh::equal_ignoring_case(bh::view(header.name), name)) continue;
    found.twice = found.header != nullptr;
    if (found.twice) break;
    found.header = &header;
  }
  return found;
}

HeaderFault missing_header(std::string_view name, std::string_view member) {
  return fault(name, {"the header ", name, " is missing: it must have the value of ", member});
}

HeaderFault doubled_header(std::string_view name) {
  return fault(name, {"the header ", name, " occurs more than once"});
}

HeaderFault malformed_header(std::string_view name, const char *problem) {
  return fault(name, {"the header ", name, " is malformed: ", problem});
}

HeaderFault unequal_header(std::string_view name, std::string_view member) {
  return fault(name, {"the header ", name, " differs from ", member});
}

}  // namespace bulkhead::mcp
