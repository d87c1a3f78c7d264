// What a session sees, item by item with its server's own name: for plugins that translate.
#include <string>
#include <unordered_set>

#include "route/router.hpp"

namespace bulkhead {
namespace {

void append_timeout(std::string *out, const ServerDef &def, std::string_view tool) {
  std::optional<std::uint64_t> timeout = def.timeout_ms;
  const auto own = def.tool_timeouts_ms.find(std::string(tool));
  if (own != def.tool_timeouts_ms.end()) timeout = own->second;
  if (timeout.has_value()) out->append(",\"timeout_ms\":").append(std::to_string(*timeout));
}

}  // namespace

bh_status Router::list_items(bh_session handle, const ClientEnd *end, ItemKind kind,
                             std::string *out) {
  const Session *s = session(handle);
  if (s == nullptr || s->end != end) return BH_STALE;
  if (s->view == nullptr) return BH_E_UNAVAILABLE;
  View &view = *s->view;
  if (!Views::is_ready(view)) return BH_WOULD_BLOCK;
  out->assign(1, '[');
  if (!exposed(facts(kind).list_method)) {
    *out += "]";
    return BH_OK;
  }
  const Catalogue *seen = views_.listed_to(view, *s);
  if (seen == nullptr) return BH_WOULD_BLOCK;
  std::unordered_set<std::string> done;
  for (std::uint32_t i = 0; i < view.lanes.size(); ++i) {
    if (view.lanes[i]->listed()) append_items(*view.lanes[i], i, kind, *seen, &done, out);
  }
  *out += "]";
  return BH_OK;
}

// Those of one lane that are in the client's list under this lane's server.
void Router::append_items(const Lane &lane, std::uint32_t source, ItemKind kind,
                          const Catalogue &seen, std::unordered_set<std::string> *done,
                          std::string *out) const {
  const ServerDef &def = lane.upstream().def();
  const ItemList &items = lane.items(kind);
  const bool is_uri = kind == ItemKind::resource || kind == ItemKind::resource_template;
  std::string scratch;
  for (const ItemList::Item &item : items.items) {
    const std::string_view token = item.key.in(items.bytes);
    const std::string_view original = mcp::unquote(token, &scratch);
    const std::optional<std::string> name =
        is_uri ? names_.compose_uri(def.name, original) : names_.compose(def.name, original);
    const Resolved *resolved = name.has_value() ? seen.resolve(kind, *name) : nullptr;
    if (resolved == nullptr || resolved->source != source || resolved->original_token != token) {
      continue;
    }
    if (!done->insert(*name).second) continue;
    if (out->size() > 1) *out += ',';
    out->append("{\"server\":");
    mcp::append_quoted(out, def.name);
    out->append(",\"name\":");
    mcp::append_quoted(out, *name);
    out->append(",\"original_name\":").append(token);
    if (kind == ItemKind::tool) append_timeout(out, def, original);
    out->append(",\"item\":").append(item.raw.in(items.bytes)).append("}");
  }
}

}  // namespace bulkhead
