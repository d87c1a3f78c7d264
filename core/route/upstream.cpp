#include "route/upstream.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"
#include "route/lane_host.hpp"
#include "route/place_lane.hpp"
#include "route/request_scopes.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {

namespace {

void add_counts(const Lane &lane, ServerStatus *status) {
  if (!lane.listed()) return;
  status->tools = static_cast<std::uint32_t>(lane.items(ItemKind::tool).items.size());
  status->resources = static_cast<std::uint32_t>(lane.items(ItemKind::resource).items.size());
  status->prompts = static_cast<std::uint32_t>(lane.items(ItemKind::prompt).items.size());
}

// Returns true if this lane lists the URI, or lists a template that may produce it.
bool may_list(const Lane &lane, std::string_view uri) {
  std::string scratch;
  for (const ItemKind kind : {ItemKind::resource, ItemKind::resource_template}) {
    const ItemList &list = lane.items(kind);
    for (const ItemList::Item &item : list.items) {
      const std::string_view key = mcp::unquote(item.key.in(list.bytes), &scratch);
      const bool same =
          kind == ItemKind::resource ? uri == key : uri.starts_with(key.substr(0, key.find('{')));
      if (same) return true;
    }
  }
  return false;
}

}  // namespace

bool Upstream::may_have(std::string_view uri) const {
  bool known = false;
  for (const auto &lane : lanes_) {
    if (!lane->listed()) continue;
    if (may_list(*lane, uri)) return true;
    known = true;
  }
  return !known;
}

bool Upstream::has_own_lane(ClientCaps caps, std::uint64_t key) const noexcept {
  if (tools != nullptr) return false;
  const bool may_be_asked = (caps & (cap::elicitation | cap::sampling | cap::roots)) != 0;
  if (asks && may_be_asked && RequestScopes::is_scope(key)) return true;
  const bool roots = def_.roots_mode() == RootsMode::per_client && (caps & cap::roots) != 0;
  return roots || def_.session == SessionScope::per_client;
}

// Returns the capabilities to declare to the server. `session` is the session of the lane, or 0 for
// a shared lane. Nothing is declared to a tools plugin, because it sends no requests to clients.
ClientCaps Upstream::declared_caps(ClientCaps caps, std::uint64_t session) const noexcept {
  constexpr ClientCaps roots = cap::roots | cap::roots_changed;
  if (tools != nullptr) return 0;
  const ClientCaps others = caps & cap::shareable;
  if (def_.roots_mode() == RootsMode::static_list) return others | roots;
  const bool own = def_.roots_mode() == RootsMode::per_client && session != 0;
  return own ? others | (caps & roots) : others;
}

Lane *Upstream::lane_for(ClientCaps caps, std::uint64_t session) {
  if (def_.disabled || (connector == nullptr && tools == nullptr)) return nullptr;
  // A view that belongs to no particular client (session 0) gets a shared lane, which provides the
  // lists.
  const std::uint64_t key_session = has_own_lane(caps, session) ? session : 0;
  const ClientCaps key_caps = declared_caps(caps, key_session);
  for (const auto &lane : lanes_) {
    if (lane->pool_of != nullptr) continue;
    if (lane->caps() == key_caps && lane->session() == key_session) return lane.get();
  }
  if (tools != nullptr) {
    lanes_.push_back(std::make_unique<ToolsLane>(host_, *this, key_caps, key_session));
  } else {
    lanes_.push_back(std::make_unique<WireLane>(host_, *this, key_caps, key_session));
    if (former != nullptr) inherit(*lanes_.back());
  }
  return lanes_.back().get();
}

// Copies the items from the former lane for the same clients or, if there is none, from any former
// lane. A server's lists differ little between lanes, and the new connection will soon provide its
// own list.
void Upstream::inherit(Lane &lane) const {
  const Lane *from = nullptr;
  for (const auto &candidate : former->lanes()) {
    if (!candidate->listed()) continue;
    const bool same = candidate->caps() == lane.caps() && candidate->session() == lane.session();
    if (from == nullptr || same) from = candidate.get();
    if (same) break;
  }
  if (from != nullptr) lane.inherit(*from);
}

void Upstream::redefine(ServerDef definition) {
  const bool roots = def_.root_folders != definition.root_folders;
  def_ = std::move(definition);
  const bh_str changed =
      bh::str(R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})");
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const bool told = lanes_[i]->takes(mcp::Method::notifications_roots_list_changed);
    if (roots && told && lanes_[i]->opened()) lanes_[i]->send(BH_LANE_NOTIFICATION, &changed, 1);
    lanes_[i]->redefined();
  }
}

void Upstream::remove(Lane *lane) {
  const auto goes = [lane](const auto &candidate) {
    return candidate.get() == lane || candidate->pool_of == lane;
  };
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    if (!goes(lanes_[i])) continue;
    lanes_[i]->close();
    host_.lane_ends(*lanes_[i]);
  }
  std::erase_if(lanes_, goes);
}

void Upstream::fill_pool(Lane &first) {
  if (def_.pool_size < 2 || first.pool_of != nullptr || connector == nullptr) return;
  if (first.draining()) return;
  std::uint32_t there = 1;
  for (const auto &lane : lanes_) there += lane->pool_of == &first ? 1 : 0;
  for (; there < def_.pool_size; ++there) {
    lanes_.push_back(std::make_unique<WireLane>(host_, *this, first.caps(), first.session()));
    lanes_.back()->pool_of = &first;
    lanes_.back()->start();
  }
}

Lane *Upstream::share(Lane &first, std::string_view tool, const Resolved &resolved) {
  const auto &safe = def_.pool_safe_tools;
  if (def_.pool_size < 2 || std::find(safe.begin(), safe.end(), tool) == safe.end()) return &first;
  std::vector<Lane *> ready;
  for (const auto &lane : lanes_) {
    // `resolved` is from the list of `first`.
    const bool same =
        lane.get() == &first || (lane->pool_of == &first && lists_definition(*lane, resolved));
    if (same && lane->can_take_calls()) ready.push_back(lane.get());
  }
  return ready.empty() ? &first : ready[shared_calls_++ % ready.size()];
}

const std::string *Upstream::kept_list(ClientCaps caps) const noexcept {
  for (const KeptList &list : def_.kept.lists) {
    if (list.caps == caps) return &list.text;
  }
  return nullptr;
}

bool Upstream::keep_list(ClientCaps caps, const std::string &text) {
  if (def_.kept.definition.empty()) return false;
  const std::string *known = kept_list(caps);
  if (known != nullptr ? *known == text : text.empty()) return false;
  merge_kept_list(&def_.kept, {caps, text});
  return true;
}

std::uint64_t Upstream::timeout_ms(mcp::Method method, std::string_view tool) const {
  const Limits &limits = host_.limits();
  const bool call = method == mcp::Method::tools_call || method == mcp::Method::tasks_result;
  std::uint64_t timeout =
      def_.timeout_ms.value_or(call ? limits.call_timeout_ms : limits.request_timeout_ms);
  if (call && !def_.tool_timeouts_ms.empty()) {
    const auto at = def_.tool_timeouts_ms.find(std::string(tool));
    if (at != def_.tool_timeouts_ms.end()) timeout = at->second;
  }
  return std::min(timeout, limits.timeout_ceiling_ms);
}

static bool is_open(const Lane &lane) noexcept {
  return lane.state() == LaneState::ready || lane.state() == LaneState::connecting;
}

// Returns the first lane. In a gateway that starts its servers eagerly, this lane serves clients
// without capabilities and lives as long as the gateway. If the server is lazy and the first lane
// is not running, returns the first lane that is, if any. Returns null if there are no lanes.
const Lane *Upstream::shown_lane() const noexcept {
  if (lanes_.empty()) return nullptr;
  const auto running =
      std::find_if(lanes_.begin(), lanes_.end(), [](const auto &lane) { return is_open(*lane); });
  const bool first = !lanes_.front()->sleeps() || running == lanes_.end();
  return first ? lanes_.front().get() : running->get();
}

ServerStatus Upstream::status() const {
  ServerStatus status;
  status.name = def_.name;
  status.type = def_.type;
  if (def_.disabled) {
    status.state = ServerState::disabled;
    status.reason = def_.disabled_reason;
    return status;
  }
  if (!unusable.empty()) {
    status.state = ServerState::failed;
    status.reason = unusable;
    return status;
  }
  status.requested_roots = requested_roots;
  for (const auto &lane : lanes_) {
    status.restarts += lane->restarts();
    status.in_flight += lane->in_flight;
    if (is_open(*lane)) ++status.connections;
  }
  if (lanes_.empty() && !def_.lazy) return status;
  const Lane *shown = shown_lane();
  if (shown == nullptr || shown->sleeps()) {
    status.state = ServerState::idle;
    status.reason = "it is not running; the next call starts it";
    if (shown != nullptr) add_counts(*shown, &status);
    return status;
  }
  const Lane &lane = *shown;
  status.reason = lane.reason();
  status.state = lane.state() == LaneState::ready     ? ServerState::ready
                 : lane.state() == LaneState::waiting ? ServerState::failed
                                                      : ServerState::connecting;
  status.protocol = lane.revision();
  add_counts(lane, &status);
  return status;
}

}  // namespace bulkhead
