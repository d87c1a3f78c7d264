#include "room.hpp"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

namespace transport_http {

namespace {

using Use = Connection::Use;

bool in_use(const Connection &c) noexcept {
  return !c.doomed() && c.use() >= Use::receiving;
}

// Returns true if the connection carries a session's stream for messages that do not belong to a
// call.
bool listens(const Connection &c) noexcept {
  return c.attached.role == Attachment::Role::general ||
         c.attached.role == Attachment::Role::http_sse;
}

bool is_older(const Connection *a, const Connection *b) noexcept {
  return a->since_ns() < b->since_ns();
}

bool goes_before(const Connection *a, const Connection *b) noexcept {
  if (a->attached.session == nullptr) return is_older(a, b);
  if (listens(*a) != listens(*b)) return listens(*b);
  return a->since_ns() > b->since_ns();
}

struct Largest {
  std::vector<Connection *> members;
  std::size_t ahead = 0;  // difference to the size of the next largest group
};

// Finds the largest group of connections. key(c) identifies the group to which the connection c
// belongs.
template <class Key>
Largest largest_group(const std::vector<Connection *> &all, const Key &key) {
  std::map<decltype(key(*all.front())), std::vector<Connection *>> groups;
  for (Connection *c : all) groups[key(*c)].push_back(c);
  Largest out;
  for (auto &[unused_key, members] : groups) {
    const std::size_t a = members.size(), b = out.members.size();
    out.ahead = a > b ? a - b : std::min(out.ahead, b - a);
    if (a > b) out.members = std::move(members);
  }
  return out;
}

Largest largest_peer(const std::vector<Connection *> &all) {
  return largest_group(all, [](const Connection &c) { return std::string_view(c.peer_key); });
}

template <class Before>
std::vector<Connection *> first(std::vector<Connection *> found, std::size_t n, Before before) {
  n = std::min(n, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(n), found.end(),
                    before);
  found.resize(n);
  return found;
}

std::size_t part(std::size_t whole, std::size_t of) noexcept {
  return std::max<std::size_t>(1, whole / of);
}

}  // namespace

std::vector<Connection *> unused(Connections all) {
  std::vector<Connection *> found;
  Use least = Use::idle;
  for (const auto &c : all) {
    if (c->doomed() || c->use() > least) continue;
    if (c->use() < least) found.clear();
    least = c->use();
    found.push_back(c.get());
  }
  const std::size_t most = part(all.size(), least == Use::silent ? 128 : 512);
  return first(largest_peer(found).members, most, is_older);
}

std::vector<Connection *> of_largest_share(Connections all) {
  std::vector<Connection *> found;
  for (const auto &c : all) {
    if (in_use(*c)) found.push_back(c.get());
  }
  const Largest peer = largest_peer(found);
  if (peer.members.size() < 2) return {};
  Largest group = largest_group(peer.members, [](const Connection &c) {
    return std::pair<Use, const Session *>(c.use(), c.attached.session);
  });
  const std::size_t most = std::min({peer.ahead, group.ahead, part(all.size(), 512)});
  return first(std::move(group.members), std::max<std::size_t>(1, most), goes_before);
}

}  // namespace transport_http
