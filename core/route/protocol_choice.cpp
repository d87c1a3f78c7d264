#include "route/protocol_choice.hpp"

#include <charconv>

#include "route/stateless_server_edge.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view text_before = R"({"protocol":")";
constexpr std::string_view text_between = R"(","decided":)";

const ServerEdge *pinned_edge(const ServerDef &def) {
  if (def.protocol == ProtocolPin::v2026_07_28) return &stateless_server_edge();
  if (def.protocol != ProtocolPin::automatic) {
    return &session_server_edge(*find_revision(to_string(def.protocol)));
  }
  // HTTP+SSE is the transport of 2024-11-05, so it implies the session-based generation.
  return def.type == "sse" ? &session_server_edge() : nullptr;
}

}  // namespace

ProtocolChoice::ProtocolChoice(const ServerDef &definition) : pinned_(pinned_edge(definition)) {
  if (pinned_ != nullptr) return;
  for (const KeptList &list : definition.kept.lists) read(list.text);
}

// Reads the verdict from the beginning of a stored list. The text is untrusted and might not even
// be JSON.
void ProtocolChoice::read(std::string_view list) {
  if (!list.starts_with(text_before)) return;
  list.remove_prefix(text_before.size());
  const std::string_view revision = list.substr(0, StatelessServerEdge::revision.size());
  list.remove_prefix(revision.size());
  if (revision != StatelessServerEdge::revision && !find_revision(revision)) return;
  if (!list.starts_with(text_between)) return;
  list.remove_prefix(text_between.size());
  std::uint64_t at = 0;
  const auto [end, error] = std::from_chars(list.data(), list.data() + list.size(), at);
  if (error != std::errc{} || end == list.data() + list.size() || at < decided_s_) return;
  revision_ = revision;
  decided_s_ = at;
}

// A verdict whose time is in the future is invalid, because the clock must have been changed.
bool ProtocolChoice::valid(std::uint64_t now_s) const noexcept {
  return !revision_.empty() && decided_s_ <= now_s && now_s - decided_s_ < lifetime_s;
}

const ServerEdge &ProtocolChoice::first(std::uint64_t now_s) const noexcept {
  if (pinned_ != nullptr) return *pinned_;
  const bool session = valid(now_s) ? revision_ != StatelessServerEdge::revision : ends_on_probe_;
  return session ? session_server_edge() : stateless_server_edge();
}

const ServerEdge *ProtocolChoice::second(std::uint64_t now_s) const noexcept {
  if (pinned_ != nullptr) return nullptr;
  if (first(now_s).stateless()) return &session_server_edge();
  return &stateless_server_edge();
}

// Confirming a valid verdict does not renew its time, so it eventually expires and the server is
// probed again.
void ProtocolChoice::decided(const ServerEdge &edge, std::string_view revision,
                             std::uint64_t now_s) {
  if (pinned_ != nullptr) return;
  const bool same =
      valid(now_s) && edge.stateless() == (revision_ == StatelessServerEdge::revision);
  if (!same) decided_s_ = now_s;
  revision_ = revision;
  ends_on_probe_ = false;
}

// A session-based verdict is kept, because another connection may have just detected it.
bool ProtocolChoice::ended_on_probe() noexcept {
  if (pinned_ != nullptr || ends_on_probe_) return false;
  if (revision_ == StatelessServerEdge::revision) revision_.clear();
  return ends_on_probe_ = true;
}

std::string ProtocolChoice::stamped(std::string list) const {
  if (pinned_ != nullptr || revision_.empty()) return list;
  std::string stamp(text_before);
  stamp.append(revision_).append(text_between).append(std::to_string(decided_s_));
  if (list.empty()) return stamp + "}";
  return list.replace(0, 1, stamp + ",");
}

}  // namespace bulkhead
