#include "route/list_requests.hpp"

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "route/lane.hpp"
#include "route/protocol.hpp"
#include "route/result_form.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

void append_timeout(std::string *out, const ServerDef &def, std::string_view tool) {
  std::optional<std::uint64_t> timeout = def.timeout_ms;
  const auto own = def.tool_timeouts_ms.find(std::string(tool));
  if (own != def.tool_timeouts_ms.end()) timeout = own->second;
  if (timeout.has_value()) out->append(",\"timeout_ms\":").append(std::to_string(*timeout));
}

}  // namespace

std::optional<ItemKind> listed_kind(mcp::Method method) {
  for (const ItemKind kind : all_item_kinds) {
    if (facts(kind).list_method == method) return kind;
  }
  return std::nullopt;
}

bool is_exposed(const Expose &e, mcp::Method method) {
  switch (method) {
    case mcp::Method::tools_list:
    case mcp::Method::tools_call:
    case mcp::Method::tasks_get:
    case mcp::Method::tasks_result:
    case mcp::Method::tasks_update:
    case mcp::Method::tasks_cancel:
      return e.tools;
    case mcp::Method::resources_list:
    case mcp::Method::resources_templates_list:
    case mcp::Method::resources_read:
      return e.resources;
    case mcp::Method::resources_subscribe:
    case mcp::Method::resources_unsubscribe:
      return e.resources && e.subscribe;
    case mcp::Method::prompts_list:
    case mcp::Method::prompts_get:
      return e.prompts;
    case mcp::Method::completion_complete:
      return e.completions;
    case mcp::Method::logging_set_level:
      return e.logging;
    default:
      return true;
  }
}

void ListRequests::answer(Session &s, Incoming &request, ItemKind kind) {
  const mcp::Scan &scan = *request.message.scan;
  View &view = *s.view;
  needs_.views.wake_unlisted(view);
  if (!Views::is_ready(view)) return needs_.views.wait(view, request);
  if (scan.cursor.empty()) {
    for (Lane *lane : view.lanes) lane->refresh(kind, request.start_ns);
  }
  const std::string_view id = request.id();
  const Catalogue *catalogue = needs_.views.listed_to(view, s);
  if (catalogue == nullptr) return needs_.views.wait(view, request);
  std::uint32_t first = 0;
  if (!scan.cursor.empty()) {
    std::string scratch;
    const auto at = cursors_.decode(catalogue->version(), kind,
                                    mcp::unquote(request.message[scan.cursor], &scratch));
    if (!at.has_value()) {
      return needs_.answers.error(
          request, code::invalid_params,
          "invalid cursor: it is not from this list, or the list has changed "
          "since; start again without a cursor");
    }
    first = *at;
  }
  // Estimated size of the rest of the message: the id, the member name and the cursor.
  const std::uint64_t frame = id.size() + 512, most = s.max_message_bytes;
  const std::uint64_t page_bytes = most == 0 ? 0 : most > frame ? most - frame : 1;
  const auto clients = request.reply.form == nullptr ? Catalogue::For::clients_with_sessions
                                                     : Catalogue::For::all_clients;
  const auto page =
      catalogue->page(kind, first, needs_.profile.limits.page_items, page_bytes, clients);
  if (!page.has_value()) {
    return needs_.answers.error(request, code::invalid_params,
                                "invalid cursor: it is beyond the end of the list");
  }
  needs_.views.mark_shown(view);
  const std::uint8_t listed = s.listed;
  s.listed |= static_cast<std::uint8_t>(1u << static_cast<unsigned>(kind));
  if (s.listed != listed) needs_.on_listed(s);
  std::string tail = "]";
  if (page->next.has_value()) {
    tail.append(R"(,"nextCursor":")")
        .append(cursors_.encode(catalogue->version(), kind, *page->next))
        .append("\"");
  }
  tail.append("}}");
  std::string opening;
  if (const ResultForm *form = request.reply.form) {
    opening.append(R"(,"result":{)")
        .append(form->list_members(hints(view, kind, request.start_ns)));
    opening.append(",\"");
  }
  const bh_str parts[] = {bh::str(R"({"jsonrpc":"2.0","id":)"),
                          bh::str(id),
                          bh::str(opening.empty() ? std::string_view(R"(,"result":{")") : opening),
                          bh::str(facts(kind).member),
                          bh::str("\":["),
                          bh::str(page->items),
                          bh::str(tail)};
  if (needs_.recorder.active()) {
    std::string result = "{\"";
    result.append(facts(kind).member).append("\":[").append(page->items).append(tail);
    result.pop_back();  // remove the closing brace of the message
    needs_.answers.record(request, BH_OUTCOME_OK, {}, result);
  }
  needs_.answers.answer(request.reply, parts, 7);
}

// Combines the hints of all servers of the view. If a server is not listed, the result forbids
// caching, because the server may add its items at any time.
ListHints ListRequests::hints(const View &view, ItemKind kind, std::uint64_t now_ns) const {
  std::optional<ListHints> out;
  for (const Lane *lane : view.lanes) {
    const auto hints = lane->listed() ? lane->list_hints(kind, now_ns) : ListHints{};
    if (hints.has_value()) out = out.has_value() ? out->with(*hints) : *hints;
  }
  if (!out.has_value()) return {};
  if (needs_.views.is_filtered()) out->is_public = false;
  return *out;
}

bh_status ListRequests::items(bh_session handle, const ClientEnd *end, ItemKind kind,
                              std::string *out) {
  const Session *s = needs_.sessions.find(handle);
  if (s == nullptr || s->end != end) return BH_STALE;
  if (s->view == nullptr) return BH_E_UNAVAILABLE;
  View &view = *s->view;
  if (!Views::is_ready(view)) return BH_WOULD_BLOCK;
  out->assign(1, '[');
  if (!is_exposed(needs_.profile.expose, facts(kind).list_method)) {
    *out += "]";
    return BH_OK;
  }
  const Catalogue *seen = needs_.views.listed_to(view, *s);
  if (seen == nullptr) return BH_WOULD_BLOCK;
  std::unordered_set<std::string> done;
  for (std::uint32_t i = 0; i < view.lanes.size(); ++i) {
    if (view.lanes[i]->listed()) append_items(*view.lanes[i], i, kind, *seen, &done, out);
  }
  *out += "]";
  return BH_OK;
}

// Appends the items of one lane that are visible to the client. `done` contains the names that have
// already been appended.
void ListRequests::append_items(const Lane &lane, std::uint32_t source, ItemKind kind,
                                const Catalogue &seen, std::unordered_set<std::string> *done,
                                std::string *out) const {
  const ServerDef &def = lane.upstream().def();
  const ItemList &items = lane.items(kind);
  const bool is_uri = kind == ItemKind::resource || kind == ItemKind::resource_template;
  std::string scratch;
  for (const ItemList::Item &item : items.items) {
    const std::string_view token = item.key.in(items.bytes);
    const std::string_view original = mcp::unquote(token, &scratch);
    const std::optional<std::string> name = is_uri ? needs_.names.compose_uri(def.name, original)
                                                   : needs_.names.compose(def.name, original);
    const Resolved *resolved = name.has_value() ? seen.resolve(kind, *name) : nullptr;
    if (resolved == nullptr || resolved->source != source || resolved->original_token != token) {
      continue;
    }
    if (!done->insert(*name).second) continue;
    if (out->size() > 1) *out += ',';
    out->append("{\"server\":");
    bh::json::append_quoted(out, def.name);
    bh::json::append_member(out, "name", *name);
    out->append(",\"original_name\":").append(token);
    if (kind == ItemKind::tool) append_timeout(out, def, original);
    out->append(",\"item\":").append(item.raw.in(items.bytes)).append("}");
  }
}

}  // namespace bulkhead
