// Determines which count is evicted next: the least recently used count of the principal with the
// most counts.
//
// The keys are borrowed: a key must stay valid and in place until remove(). Single-threaded. add(),
// remove() and next() take time logarithmic in the number of principals; use(), size() and
// largest() take constant time.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace bulkhead::rules {

class EvictionOrder {
  using Keys = std::list<const std::string *>;  // the least recently used key is the first one
  struct Group {
    std::string_view principal;
    Keys keys;
  };

 public:
  // The place of a count in the order.
  struct Place {
    Group *group = nullptr;
    Keys::iterator at;
  };

  // Adds a count as the most recently used one of its principal.
  Place add(std::string_view principal, const std::string &key);
  // Makes the count the most recently used one of its principal.
  static void use(const Place &place);
  void remove(const Place &place);
  // Returns the key of the count to evict, or nullptr if there is none.
  const std::string *next() const;
  // Calls f(key, level) for each count. In the order of falling levels, next() would return them,
  // if no count were used or added.
  template <class F>
  void each(F f) const {
    for (const auto &[principal, group] : groups_) {
      std::size_t level = group.keys.size();
      for (const std::string *key : group.keys) f(*key, level--);
    }
  }
  // size() returns the number of counts, largest() the number of counts of next()'s principal.
  std::size_t size() const noexcept { return size_; }
  std::size_t largest() const noexcept { return by_size_.empty() ? 0 : by_size_.rbegin()->first; }

 private:
  std::map<std::string, Group, std::less<>> groups_;  // by principal; none is empty
  std::size_t size_ = 0;
  std::set<std::pair<std::size_t, std::string_view>> by_size_;  // number of keys, principal
};

}  // namespace bulkhead::rules
