// Implements bh.host.control/1, with which authorized plugins add and remove servers.
#include <string>

#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "embed/extension_tables.hpp"
#include "embed/host_parts.hpp"
#include "embed/part.hpp"
#include "embed/server_changes.hpp"
#include "mcp/scan.hpp"
#include "route/list_requests.hpp"
#include "route/upstreams.hpp"

namespace bulkhead {
namespace {

bh_status replace_servers(void *ctx, bh_str definitions, std::uint64_t wait_ms,
                          bh_control_done done, void *arg, bh_error *error) {
  Part &part = part_of(ctx);
  return part.host->changes.replace_servers(part, bh::view(definitions), wait_ms, done, arg, error);
}

// Removes the parts of a URL that may contain credentials: user, password, query and fragment.
std::string shown_url(std::string_view url) {
  url = url.substr(0, url.find_first_of("?#"));
  const std::size_t authority = url.find("://");
  if (authority == std::string_view::npos) return std::string(url);
  const std::size_t host = authority + 3;
  const std::size_t at = url.substr(0, url.find('/', host)).rfind('@');
  if (at == std::string_view::npos || at < host) return std::string(url);
  return std::string(url.substr(0, host)).append(url.substr(at + 1));
}

std::string_view shown_source(const Upstream &upstream) {
  const ServerDef &def = upstream.def();
  if (!def.source.empty()) return def.source;
  if (upstream.connector == nullptr && def.command.empty() && def.url.empty()) return "builtin";
  if (def.origin.layer == "corp" || def.origin.layer == "user") return def.origin.layer;
  return "profile";
}

void append_server(std::string *out, const Upstream &upstream) {
  const ServerStatus status = upstream.status();
  const auto add = [out](std::string_view name, const auto &value) {
    bh::json::append_member(out, name, value);
  };
  *out += '{';
  add("name", status.name);
  add("type", status.type);
  add("url", shown_url(upstream.def().url));
  add("enabled", !upstream.def().disabled);
  add("source", shown_source(upstream));
  add("is_stdio", !upstream.def().command.empty());
  add("state", to_string(status.state));
  add("reason", status.reason);
  add("connected", status.state == ServerState::ready);
  add("restarts", status.restarts);
  add("tool_count", status.tools);
  add("resource_count", status.resources);
  add("prompt_count", status.prompts);
  *out += '}';
}

bh_status list_servers(void *ctx, bh_buf *out, bh_error *error) {
  return bh::guarded(error, [&] {
    std::string text = "[";
    for (const auto &upstream : part_of(ctx).host->core.route().servers.list.all()) {
      if (text.size() > 1) text += ',';
      append_server(&text, *upstream);
    }
    *out = bh::buf(text + "]");
    return BH_OK;
  });
}

bh_status list_items(void *ctx, bh_session session, std::uint32_t kind, bh_buf *out,
                     bh_error *error) {
  if (kind < BH_LIST_TOOLS || kind > BH_LIST_PROMPTS) {
    return bh::fail(error, BH_E_INVALID, "unknown kind of item");
  }
  return bh::guarded(error, [&] {
    Part &part = part_of(ctx);
    std::string text;
    // In the ABI, the number of an item kind is the ItemKind value plus one.
    const bh_status status = part.host->core.route().clients.lists.items(
        session, part.end.get(), static_cast<ItemKind>(kind - 1), &text);
    if (status == BH_OK) *out = bh::buf(std::move(text));
    if (status < 0) return bh::fail(error, status, "the session is not initialized");
    return status;
  });
}

}  // namespace

bh_host_control control_functions() noexcept {
  return {sizeof(bh_host_control), 0, replace_servers, list_servers, list_items};
}

}  // namespace bulkhead
