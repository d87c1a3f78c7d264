#include "eviction.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace transport_http {

Eviction::Rank Eviction::rank_of(const Session &session) noexcept {
  if (!session.ready) return Rank::handshake;
  if (!session.streams.empty() || session.hold) return Rank::calling;
  return session.general != nullptr ? Rank::listening : Rank::unused;
}

// Returns the next candidate from the previous scan that is still valid.
Session *Eviction::next_known(Sessions &sessions) {
  while (!known_.empty()) {
    const auto [handle, last_used_ns] = known_.front();
    known_.pop_front();
    Session *session = sessions.find(handle);
    if (session == nullptr || session->last_used_ns != last_used_ns) continue;
    if (rank_of(*session) == Rank::handshake) return session;
  }
  return nullptr;
}

Session *Eviction::pick(Sessions &sessions, std::uint64_t now_ns) {
  if (Session *known = next_known(sessions)) return known;
  const auto young = [now_ns](const Session &session) {
    return now_ns - session.last_used_ns < young_ns;
  };
  std::array<std::vector<Session *>, static_cast<std::size_t>(Rank::spared) + 1> ranks;
  const auto of = [&](Rank rank) -> auto & { return ranks[static_cast<std::size_t>(rank)]; };
  sessions.for_each([&](Session &session) { of(rank_of(session)).push_back(&session); });
  auto &handshakes = of(Rank::handshake);
  if (handshakes.size() <= spared_) {
    std::copy_if(handshakes.begin(), handshakes.end(), std::back_inserter(of(Rank::spared)),
                 [&](const Session *s) { return young(*s); });
    std::erase_if(handshakes, [&](const Session *s) { return young(*s); });
  }
  for (auto &candidates : ranks) {
    if (candidates.empty()) continue;
    std::unordered_map<std::string_view, std::size_t> shares;
    std::size_t most = 0;
    for (const Session *s : candidates) most = std::max(most, ++shares[s->peer]);
    std::erase_if(candidates, [&](const Session *s) { return shares[s->peer] != most; });
    const std::size_t n = std::min(batch, candidates.size());
    std::partial_sort(
        candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(n), candidates.end(),
        [](const Session *a, const Session *b) { return a->last_used_ns < b->last_used_ns; });
    if (&candidates == &handshakes) {
      for (std::size_t i = 1; i < n; ++i) {
        known_.emplace_back(candidates[i]->handle, candidates[i]->last_used_ns);
      }
    }
    return candidates.front();
  }
  return nullptr;
}

}  // namespace transport_http
