#include "route/server_lists.hpp"

#include <utility>
#include <vector>

#include "route/kept_list.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_pages = 10'000;
constexpr std::uint32_t max_failures = 5;  // of a connection's first tools/list

// Removes the page that starts at item `second` if it is identical to the page that starts at item
// `first`.
void drop_repeated_page(ItemList *list, std::size_t first, std::size_t second) {
  const auto bytes_from = [list](std::size_t item) {
    return item < list->items.size() ? list->items[item].raw.begin
                                     : static_cast<std::uint32_t>(list->bytes.size());
  };
  const std::string_view bytes = list->bytes;
  const std::uint32_t at = bytes_from(second);
  if (bytes.substr(bytes_from(first), at - bytes_from(first)) != bytes.substr(at)) return;
  list->bytes.resize(at);
  list->items.resize(second);
}

}  // namespace

void ServerLists::reset() {
  for (Listing &listing : listings_) listing = {};
  ages_ = {};
  first_lists_ = 0;
  failures_ = 0;
}

// Requests all lists at once, in one round trip instead of four. The wanted lists are registered
// first, because a connector may deliver a response while the request is still being sent, or
// report a change to a list that has not been requested yet.
void ServerLists::start_all() {
  const bh_lane handle = lane_.handle();
  const ServerCaps &caps = lane_.server_caps();
  const std::array<bool, item_kinds> wanted = {caps.tools, caps.resources, caps.resources,
                                               caps.prompts};
  first_lists_ = 1;
  for (const bool want : wanted) first_lists_ += want ? 1 : 0;
  for (const ItemKind kind : all_item_kinds) {
    const auto index = static_cast<std::size_t>(kind);
    listings_[index].first = wanted[index];
    if (!wanted[index]) items_[index] = {};
  }
  for (const ItemKind kind : all_item_kinds) {
    if (wanted[static_cast<std::size_t>(kind)] && lane_.handle() == handle) start(kind);
  }
  if (lane_.handle() == handle && first_lists_ != 0 && --first_lists_ == 0) owner_.become_ready();
}

void ServerLists::start(ItemKind kind) {
  Listing &listing = listings_[static_cast<std::size_t>(kind)];
  if (listing.running) {
    listing.again = true;  // one more listing afterwards, however many changes were reported
    return;
  }
  const bool first = listing.first;
  listing = {};
  listing.first = first;
  listing.running = true;
  request_page(kind, {});
}

void ServerLists::request_page(ItemKind kind, std::string_view cursor_token) {
  Exchange *e =
      wire_.own_exchange(Purpose::list, facts(kind).list_method, host_.limits().request_timeout_ms);
  if (e == nullptr) return finish(kind, false);
  e->list_kind = static_cast<std::uint8_t>(kind);
  listings_[static_cast<std::size_t>(kind)].cursor = cursor_token;
  std::string params;
  if (!cursor_token.empty()) params.append(R"({"cursor":)").append(cursor_token).append("}");
  wire_.send_own(*e, conversation_.meta_for(nullptr).added_to(params), BH_LANE_REPEATABLE,
                 conversation_.headers_for(*conversation_.edge(), e->method));
}

void ServerLists::answered(ItemKind kind, const mcp::Scan *scan, std::string_view message,
                           const Error *error, std::uint32_t retry_after_ms) {
  Listing &listing = listings_[static_cast<std::size_t>(kind)];
  const std::string method(facts(kind).list_method_text);
  std::string failure;
  if (error != nullptr) {
    failure = error->text;
  } else if (scan->kind == mcp::Kind::error) {
    failure = method + " failed: " + std::string(scan->error.in(message).substr(0, 300));
  } else {
    const std::size_t page_at = listing.incoming.items.size();
    const ListHints hints = ListHints::of(*scan, message);
    listing.hints = listing.pages == 0 ? hints : listing.hints.with(hints);
    auto next = append_page(kind, scan->result.in(message), lane_.upstream().def(), host_.limits(),
                            &listing.incoming);
    // A server that ignores cursors returns the cursor that it has just received, and would send
    // its only page forever.
    const bool again =
        next.has_value() && next->has_value() && listing.pages != 0 && **next == listing.cursor;
    if (again) drop_repeated_page(&listing.incoming, listing.page_at, page_at);
    if (next.has_value() && next->has_value() && !again && ++listing.pages < max_pages) {
      listing.page_at = page_at;
      return request_page(kind, **next);
    }
    if (!next.has_value()) failure = next.error().text;
  }
  if (!failure.empty()) {
    host_.log(BH_LOG_WARN, wire_.about(failure));
    if (kind == ItemKind::tool && listing.first) {
      const bool again = failures_++ < max_failures;
      if (again) listing.running = false;
      return owner_.tools_failed(failure, again, retry_after_ms);
    }
  }
  finish(kind, failure.empty());
}

void ServerLists::finish(ItemKind kind, bool ok) {
  Listing &listing = listings_[static_cast<std::size_t>(kind)];
  ItemList &items = items_[static_cast<std::size_t>(kind)];
  listing.running = false;
  const bool first = std::exchange(listing.first, false);
  std::vector<std::string> removed;
  ListAge &age = ages_[static_cast<std::size_t>(kind)];
  const std::uint64_t now = host_.reactor().now_ns();
  ok ? age.received(listing.hints, now) : age.failed(now);
  if (ok && kind == ItemKind::tool) {
    conversation_.use_tools(&listing.incoming,
                            [&](const std::string &text) { removed.push_back(text); });
  }
  if (ok && !(items == listing.incoming)) {
    for (const std::string &text : removed) host_.log(BH_LOG_WARN, wire_.about(text));
    const bool others = items.left_out != listing.incoming.left_out ||
                        items.ambiguous != listing.incoming.ambiguous;
    if (others) report_left_out(kind, listing.incoming);
    items = std::move(listing.incoming);
    items.bytes.shrink_to_fit();
    items.items.shrink_to_fit();
    if (kind == ItemKind::tool) host_.tools_listed(lane_);
    if (!first) {
      host_.items_changed(lane_);
      host_.lane_changed(lane_);
      keep();
    }
  } else if (!ok && first) {
    items = {};
  }
  listing.incoming = {};
  if (first && first_lists_ != 0 && --first_lists_ == 0) owner_.become_ready();
  const bool again = listing.again && lane_.handle() != 0;
  if (again) start(kind);
  if (kind == ItemKind::tool && !again) owner_.tools_read();
}

// Logs only the first name, because the status contains all of them ("not offered").
void ServerLists::report_left_out(ItemKind kind, const ItemList &list) const {
  const auto report = [&](const std::vector<std::string> &names, const std::string &why) {
    if (names.empty()) return;
    host_.log(BH_LOG_WARN, wire_.about(std::string(facts(kind).noun) + " \"" + names.front() +
                                       "\" is not offered: " + why + " (" +
                                       std::to_string(names.size()) + " in total)"));
  };
  report(list.left_out,
         "its " + std::string(facts(kind).key) + " contains control or invisible characters");
  report(list.ambiguous, "two of its members have the same name (ignoring case)");
}

void ServerLists::changed(ItemKind kind) {
  if (lane_.opened()) start(kind);
}

std::optional<ListHints> ServerLists::hints(ItemKind kind, bool reported,
                                            std::uint64_t now_ns) const {
  if (lane_.state() != LaneState::ready || conversation_.edge() == nullptr) return ListHints{};
  const ServerCaps &caps = lane_.server_caps();
  const bool has = kind == ItemKind::tool     ? caps.tools
                   : kind == ItemKind::prompt ? caps.prompts
                                              : caps.resources;
  if (!has) return std::nullopt;
  if (!conversation_.stateless()) return ListHints{};
  return ages_[static_cast<std::size_t>(kind)].hints(reported, now_ns);
}

void ServerLists::refresh(ItemKind kind, bool reported, std::uint64_t now_ns) {
  if (lane_.state() != LaneState::ready || !conversation_.stateless()) return;
  const std::size_t at = static_cast<std::size_t>(kind);
  if (listings_[at].running) return;
  if (ages_[at].needs_refresh(reported, now_ns)) start(kind);
}

void ServerLists::keep() const {
  if (lane_.session() != 0 || lane_.pool_of != nullptr || lane_.state() != LaneState::ready) return;
  Upstream &upstream = lane_.upstream();
  const std::string text =
      upstream.protocol.stamped(kept_list_text(lane_.server_caps(), lane_.instructions(), items_));
  if (upstream.keep_list(lane_.caps(), text)) {
    host_.list_learned({upstream.name(), upstream.def().kept.definition, {lane_.caps(), text}});
  }
}

// Tools are removed even from a list that is still being received.
bool ServerLists::hide() {
  const auto tools = static_cast<std::size_t>(ItemKind::tool);
  const ServerDef &def = lane_.upstream().def();
  if (hide_tools(def, &listings_[tools].incoming)) listings_[tools].page_at = 0;
  return hide_tools(def, &items_[tools]);
}

}  // namespace bulkhead
