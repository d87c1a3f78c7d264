#include "route/stateless_form.hpp"

#include "mcp/for_each.hpp"
#include "mcp/json_names.hpp"
#include "mcp/member_value.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

void StatelessForm::set_server_info(std::string_view info) {
  for (unsigned has = 0; has < combinations; ++has) texts_[has] = text_for(has, info);
}

std::string StatelessForm::text_for(unsigned has, std::string_view info) const {
  std::string text;
  const auto add = [&](unsigned bit, std::string_view member, std::string_view value) {
    if ((has & bit) != 0) return;
    text.append(text.empty() ? "\"" : ",\"").append(member).append("\":").append(value);
  };
  add(type, "resultType", R"("complete")");
  if (cacheable_) {
    add(ttl, "ttlMs", "0");
    add(scope, "cacheScope", R"("private")");
  }
  const std::string named = R"({"io.modelcontextprotocol/serverInfo":)" + std::string(info) + "}";
  add(meta, "_meta", named);
  return text;
}

// Returns the members that the result already has, as bits. An incomplete result (input_required)
// must not be cached. Its caching members are reported as present, so they are not added.
unsigned StatelessForm::has_of(std::string_view result) {
  unsigned has = 0;
  mcp::for_each_member(result, [&has](std::string_view key, std::string_view value) {
    const std::string_view name = key.substr(1, key.size() - 2);
    if (mcp::json::same_text(name, "resultType")) {
      has |= type;
      if (value != R"("complete")") has |= ttl | scope;
    } else if (mcp::json::same_text(name, "ttlMs")) {
      has |= ttl;
    } else if (mcp::json::same_text(name, "cacheScope")) {
      has |= scope;
    } else if (mcp::json::same_text(name, "_meta")) {
      has |= meta;
    }
    return has != combinations - 1;
  });
  return has;
}

unsigned StatelessForm::has_of(const Message &answer) {
  const mcp::Scan &scan = *answer.scan;
  if (scan.result_escapes || scan.result_twice) return has_of(answer[scan.result]);
  unsigned has = 0;
  if (!scan.result_meta.empty()) has |= meta;
  if (!scan.result_type.empty()) {
    has |= type;
    if (mcp::member_value(answer[scan.result_type]) != R"("complete")") has |= ttl | scope;
  }
  if (!scan.ttl_ms.empty()) has |= ttl;
  if (!scan.cache_scope.empty()) has |= scope;
  return has;
}

std::string_view StatelessForm::members(std::string_view result) const {
  return texts_[has_of(result)];
}

std::string_view StatelessForm::members(const Message &answer) const {
  return texts_[has_of(answer)];
}

std::string StatelessForm::list_members(const ListHints &hints) const {
  std::string out = texts_[ttl | scope];
  out.append(",\"ttlMs\":").append(std::to_string(hints.ttl_ms));
  return out.append(hints.is_public ? R"(,"cacheScope":"public")" : R"(,"cacheScope":"private")");
}

// In this revision, -32601 means that the gateway does not have the method. Only the client edge
// may report this, so the code is replaced here. Other reserved codes from other revisions have no
// meaning for the client.
ResultForm::ErrorForm StatelessForm::error(std::int32_t error_code) const {
  if (error_code == code::missing_capability) return {error_code, 400};
  if (error_code == code::resource_not_found || error_code == code::method_not_found) {
    return {code::invalid_params, 0};
  }
  const bool reserved = error_code >= code::first_reserved && error_code <= code::timeout;
  return {reserved ? std::int32_t{code::internal_error} : error_code, 0};
}

}  // namespace bulkhead
