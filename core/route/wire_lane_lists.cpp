// The lists of a server: reading their pages, handling changes, and inheriting the lists of a
// former definition.
#include <utility>

#include "route/kept_list.hpp"
#include "route/lane_host.hpp"
#include "route/upstream.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

constexpr std::uint32_t max_pages = 10'000;
constexpr std::uint32_t max_list_failures = 5;  // of a connection's first tools/list

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

void WireLane::start_listing(ItemKind kind) {
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

void WireLane::request_page(ItemKind kind, std::string_view cursor_token) {
  Exchange *e =
      own_exchange(Purpose::list, facts(kind).list_method, host_.limits().request_timeout_ms);
  if (e == nullptr) return listing_done(kind, false);
  e->list_kind = static_cast<std::uint8_t>(kind);
  listings_[static_cast<std::size_t>(kind)].cursor = cursor_token;
  std::string params;
  if (!cursor_token.empty()) params.append(R"({"cursor":)").append(cursor_token).append("}");
  send_own(*e, conversation_.meta_for(nullptr).added_to(params), BH_LANE_REPEATABLE,
           conversation_.headers_for(*conversation_.edge(), e->method));
}

void WireLane::page_answered(ItemKind kind, const mcp::Scan *scan, std::string_view message,
                             const Error *error) {
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
    auto next = append_page(kind, scan->result.in(message), upstream_.def(), host_.limits(),
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
    host_.log(BH_LOG_WARN, about(failure));
    // A server without its tools is unusable, so the lane fails visibly and retries instead of
    // becoming ready without tools. The list is first requested again on the same connection,
    // because a new connection would restart the server's warm-up.
    if (kind == ItemKind::tool && listing.first) {
      if (list_failures_++ < max_list_failures) return retry_list(failure);
      return attempt_failed({BH_E_PROTOCOL, failure}, retry_after_ms_);
    }
  }
  listing_done(kind, failure.empty());
}

void WireLane::retry_list(const std::string &reason) {
  listings_[static_cast<std::size_t>(ItemKind::tool)].running = false;
  state_ = LaneState::waiting;
  settled_ = true;
  reason_ = reason;
  ++failures_;
  schedule_retry(retry_after_ms_);
  host_.lane_changed(*this);
}

void WireLane::listing_done(ItemKind kind, bool ok) {
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
    for (const std::string &text : removed) host_.log(BH_LOG_WARN, about(text));
    if (items.left_out != listing.incoming.left_out) report_left_out(kind, listing.incoming);
    items = std::move(listing.incoming);
    items.bytes.shrink_to_fit();
    items.items.shrink_to_fit();
    if (kind == ItemKind::tool) host_.tools_listed(*this);
    if (!first) {
      host_.items_changed(*this);
      host_.lane_changed(*this);
      keep_list();
    }
  } else if (!ok && first) {
    items = {};
  }
  listing.incoming = {};
  if (first && first_lists_ != 0 && --first_lists_ == 0) become_ready();
  const bool again = listing.again && handle_ != 0;
  if (again) start_listing(kind);
  if (kind == ItemKind::tool && !again) release_held();
}

bool WireLane::renew_headers(Exchange &e) {
  if (e.method != mcp::Method::tools_call || state_ != LaneState::ready) return false;
  Call &call = *e.call;
  const bool renews = call.input != nullptr && !std::exchange(call.input->headers_renewed, true);
  if (renews) {
    queue_in_lane(call, call.input->request.in_hand());
    if (std::exchange(e.sent, false) && e.takes_place) --in_flight;
    held_.push_back(e.id);
  }
  list_changed(ItemKind::tool);
  if (renews) pump();
  return renews;
}

// Called when the list of tools has been read again or could not be read. Sends the held calls
// again. Calls that have ended in the meantime no longer have an exchange.
void WireLane::release_held() {
  for (const std::uint64_t id : std::exchange(held_, {})) {
    const Exchange *e = host_.exchanges().get(id);
    if (e != nullptr && e->lane == this && e->call != nullptr) host_.send_again(*e->call);
  }
}

// Logs only the first name, because the status contains all of them ("not offered").
void WireLane::report_left_out(ItemKind kind, const ItemList &list) const {
  if (list.left_out.empty()) return;
  host_.log(BH_LOG_WARN, about(std::string(facts(kind).noun) + " \"" + list.left_out.front() +
                               "\" is not offered: its " + std::string(facts(kind).key) +
                               " contains control or invisible characters (" +
                               std::to_string(list.left_out.size()) + " in total)"));
}

void WireLane::list_changed(ItemKind kind) {
  if (opened()) start_listing(kind);
}

std::optional<ListHints> WireLane::list_hints(ItemKind kind, std::uint64_t now_ns) const {
  if (state_ != LaneState::ready || conversation_.edge() == nullptr) return ListHints{};
  const bool has = kind == ItemKind::tool     ? server_caps_.tools
                   : kind == ItemKind::prompt ? server_caps_.prompts
                                              : server_caps_.resources;
  if (!has) return std::nullopt;
  if (!conversation_.stateless()) return ListHints{};
  return ages_[static_cast<std::size_t>(kind)].hints(subscriptions_.listening().reports(kind),
                                                     now_ns);
}

void WireLane::refresh(ItemKind kind, std::uint64_t now_ns) {
  if (state_ != LaneState::ready || !conversation_.stateless()) return;
  const std::size_t at = static_cast<std::size_t>(kind);
  if (listings_[at].running) return;
  if (ages_[at].needs_refresh(subscriptions_.listening().reports(kind), now_ns))
    start_listing(kind);
}

void WireLane::inherit(const Lane &former) {
  if (!former.listed()) return;
  for (const ItemKind kind : all_item_kinds) {
    items_[static_cast<std::size_t>(kind)] = former.items(kind);
  }
  hide_tools(upstream_.def(), &items_[static_cast<std::size_t>(ItemKind::tool)]);
  server_caps_ = former.server_caps();
  instructions_ = former.instructions();
  listed_ = true;
  start_grace();
}

// Uses the stored list, which the server sent earlier to this process or to another one.
void WireLane::recall() {
  if (listed_ || session_ != 0) return;
  const std::string *text = upstream_.kept_list(caps_);
  // A server that is not lazy is started anyway and will soon send its list for these clients.
  // Until then, the list for clients without capabilities is shown.
  if (text == nullptr && !lazy()) text = upstream_.kept_list(0);
  ListedItems kept;
  if (text == nullptr || !read_kept_list(*text, upstream_.def(), host_.limits(), &kept)) return;
  items_ = std::move(kept.items);
  server_caps_ = kept.caps;
  instructions_ = std::move(kept.instructions);
  listed_ = recalled_ = true;
  host_.tools_listed(*this);
  host_.items_changed(*this);
}

// The lists from a client's own connection belong to that client and are not stored.
void WireLane::keep_list() {
  if (session_ != 0 || pool_of != nullptr || state_ != LaneState::ready) return;
  const std::string text =
      upstream_.protocol.stamped(kept_list_text(server_caps_, instructions_, items_));
  if (upstream_.keep_list(caps_, text)) {
    host_.list_learned({upstream_.name(), upstream_.def().kept.definition, {caps_, text}});
  }
}

// Newly hidden tools are removed immediately, even from a list that is still being received. Tools
// that are no longer hidden appear when the server sends a new list.
void WireLane::redefined() {
  const auto tools = static_cast<std::size_t>(ItemKind::tool);
  Listing &listing = listings_[tools];
  if (hide_tools(upstream_.def(), &listing.incoming)) listing.page_at = 0;
  if (hide_tools(upstream_.def(), &items_[tools])) {
    host_.items_changed(*this);
    host_.lane_changed(*this);
  }
  list_changed(ItemKind::tool);
  pump();
}

}  // namespace bulkhead
