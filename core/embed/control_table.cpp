// bh.host.control/1: plugins that the profile trusts with it change which servers there are.
#include <algorithm>
#include <memory>
#include <string>

#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/basics.hpp"
#include "embed/host_impl.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t max_changes = 16;

Part &part_of(void *ctx) noexcept {
  return *static_cast<Part *>(Instance::of(ctx).user);
}

bh_status replace_servers(void *ctx, bh_str definitions, std::uint64_t wait_ms,
                          bh_control_done done, void *arg, bh_error *error) {
  Part &part = part_of(ctx);
  return part.host->replace_servers(part, bh::view(definitions), wait_ms, done, arg, error);
}

// Without what may be a credential: user, password, query, fragment.
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
  const auto text = [out](std::string_view name, std::string_view value) {
    out->append(",\"").append(name).append("\":");
    mcp::append_quoted(out, value);
  };
  const auto flag = [out](std::string_view name, bool value) {
    out->append(",\"").append(name).append(value ? "\":true" : "\":false");
  };
  const auto number = [out](std::string_view name, std::uint64_t value) {
    out->append(",\"").append(name).append("\":").append(std::to_string(value));
  };
  out->append(R"({"name":)");
  mcp::append_quoted(out, status.name);
  text("type", status.type);
  text("url", shown_url(upstream.def().url));
  flag("enabled", !upstream.def().disabled);
  text("source", shown_source(upstream));
  flag("is_stdio", !upstream.def().command.empty());
  text("state", to_string(status.state));
  text("reason", status.reason);
  flag("connected", status.state == ServerState::ready);
  number("restarts", status.restarts);
  number("tool_count", status.tools);
  number("resource_count", status.resources);
  number("prompt_count", status.prompts);
  *out += '}';
}

bh_status list_servers(void *ctx, bh_buf *out, bh_error *error) {
  return bh::guarded(error, [&] {
    std::string text = "[";
    for (const auto &upstream : part_of(ctx).host->router().upstreams()) {
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
    return bh::fail(error, BH_E_INVALID, "no such kind of items");
  }
  return bh::guarded(error, [&] {
    Part &part = part_of(ctx);
    std::string text;
    // The ABI's numbers are those of ItemKind plus one.
    const bh_status status = part.host->router().lists().items(
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

bool Part::granted(std::string_view grant) const noexcept {
  return std::find(use.grants.begin(), use.grants.end(), grant) != use.grants.end();
}

// Applied at the end of this turn: the caller may stand anywhere in the router or in a plugin.
bh_status HostImpl::replace_servers(Part &part, std::string_view definitions, std::uint64_t wait_ms,
                                    bh_control_done done, void *arg, bh_error *error) {
  if (stopped_ || stop_requested_.load(std::memory_order_relaxed)) {
    return bh::fail(error, BH_E_UNAVAILABLE, "the gateway is stopping");
  }
  if (changes_.size() >= max_changes) {
    return bh::fail(error, BH_E_LIMIT, "too many changes of the servers are under way");
  }
  auto given = read_definitions(definitions, profile_);
  if (!given.has_value()) return bh::fail(error, given.error().code, given.error().text);
  auto change = std::make_unique<Change>();
  change->host = this;
  change->part = &part;
  change->given = std::move(*given);
  change->wait_ms = wait_ms;
  change->done = done;
  change->arg = arg;
  changes_.push_back(std::move(change));
  reactor_->defer(this, [](void *self) { static_cast<HostImpl *>(self)->apply_changes(); }, this);
  return BH_PENDING;
}

void HostImpl::apply_changes() {
  if (stopped_ || !started_) return;
  for (const auto &change : changes_) {
    if (change->applied) continue;
    change->applied = true;
    auto mine = std::find_if(given_.begin(), given_.end(),
                             [&](const Given &g) { return g.part == change->part; });
    if (mine == given_.end()) mine = given_.insert(given_.end(), Given{change->part, {}});
    mine->servers = change->given.servers;
    std::vector<std::string> refused;
    std::vector<ServerDef> servers = all_servers(profile_, &refused);
    refuse_taken(servers, change.get());
    // The profile is the one that runs, so no plugin is loaded and this cannot fail.
    auto report = exchange(profile_, std::move(servers));
    if (report.has_value()) change->report = *std::move(report);
    change->timer = reactor_->timer_start(
        this, change->wait_ms,
        [](void *self) {
          auto &late = *static_cast<Change *>(self);
          late.timer = 0;
          late.over = true;
          late.host->check_changes_later();
        },
        change.get());
  }
  check_changes_later();
}

// Definitions whose names the profile has, or another plugin has given.
void HostImpl::refuse_taken(const std::vector<ServerDef> &servers, Change *change) const {
  std::erase_if(change->given.servers, [&](const ServerDef &def) {
    const auto same = [&](const ServerDef &other) { return other.name == def.name; };
    const auto at = std::find_if(servers.begin(), servers.end(), same);
    if (at != servers.end() && *at == def) return false;
    change->given.refused.push_back({def.name, "the profile has a server of that name"});
    return true;
  });
}

// From wherever something has ended; looked at once, at the end of the turn.
void HostImpl::check_changes_later() {
  if (changes_.empty() || changes_pending_) return;
  changes_pending_ = true;
  reactor_->defer(
      this,
      [](void *self) {
        auto &host = *static_cast<HostImpl *>(self);
        host.changes_pending_ = false;
        host.check_changes();
      },
      this);
}

void HostImpl::check_changes() {
  if (stopped_) return;
  const bool quiet = drained() && router_->views().all_settled();
  std::vector<std::unique_ptr<Change>> ended;
  std::erase_if(changes_, [&](std::unique_ptr<Change> &change) {
    if (!change->applied || !(quiet || change->over)) return false;
    ended.push_back(std::move(change));
    return true;
  });
  for (const auto &change : ended) {
    reactor_->timer_cancel(change->timer);
    const std::string report = change_report(*change);
    change->done(change->arg, bh::str(report));
  }
}

// The host stops: nobody is told any more.
void HostImpl::drop_changes() {
  for (const auto &change : changes_) reactor_->timer_cancel(change->timer);
  changes_.clear();
}

std::string HostImpl::change_report(const Change &change) const {
  std::string failed, refused;
  const auto entry = [](std::string *list, std::string_view name, std::string_view reason) {
    list->append(list->empty() ? "" : ",").append("{\"name\":");
    mcp::append_quoted(list, name);
    list->append(",\"reason\":");
    mcp::append_quoted(list, reason);
    list->append("}");
  };
  std::uint32_t ready = 0;
  for (const auto &upstream : router_->upstreams()) {
    const auto same = [&](const ServerDef &def) { return def.name == upstream->name(); };
    const auto &mine = change.given.servers;
    if (std::none_of(mine.begin(), mine.end(), same)) continue;
    const ServerStatus status = upstream->status();
    if (status.state == ServerState::ready) ++ready;
    if (status.state == ServerState::failed) entry(&failed, status.name, status.reason);
    if (status.state == ServerState::connecting) {
      entry(&failed, status.name, status.reason.empty() ? "still connecting" : status.reason);
    }
  }
  for (const auto &r : change.given.refused) entry(&refused, r.name, r.reason);
  const ApplyReport &report = change.report;
  return "{\"added\":" + std::to_string(report.added.size()) +
         ",\"changed\":" + std::to_string(report.changed.size() + report.adjusted.size()) +
         ",\"removed\":" + std::to_string(report.removed.size()) +
         ",\"unchanged\":" + std::to_string(report.unchanged) +
         ",\"ready\":" + std::to_string(ready) + ",\"failed\":[" + failed + "],\"refused\":[" +
         refused + "]}";
}

}  // namespace bulkhead
