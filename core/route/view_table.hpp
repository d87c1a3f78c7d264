// The table of views, in the order of their creation, with an index of their keys (View::session).
//
// Used on the reactor thread. Owned by Views.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "route/view.hpp"

namespace bulkhead {

class ViewTable {
 public:
  View &add(std::uint64_t key) {
    View &view = *views_.emplace_back(std::make_unique<View>());
    view.session = key;
    by_key_.emplace(key, &view);
    return view;
  }
  // Returns a view with this key for which fits(const View &) returns true, or null. Other views
  // are not examined.
  template <class Fits>
  View *find(std::uint64_t key, const Fits &fits) const {
    const auto [first, last] = by_key_.equal_range(key);
    const auto at = std::find_if(first, last, [&](const auto &one) { return fits(*one.second); });
    return at == last ? nullptr : at->second;
  }
  // Calls f(View &) for each view with this key. f must not add or erase views.
  template <class F>
  void for_each(std::uint64_t key, const F &f) const {
    const auto [first, last] = by_key_.equal_range(key);
    for (auto at = first; at != last; ++at) f(*at->second);
  }
  void erase(const View &view) {
    const auto [first, last] = by_key_.equal_range(view.session);
    const auto at = std::find_if(first, last, [&](const auto &one) { return one.second == &view; });
    if (at != last) by_key_.erase(at);
    std::erase_if(views_, [&](const auto &one) { return one.get() == &view; });
  }
  void clear() {
    by_key_.clear();
    views_.clear();
  }

  auto begin() const noexcept { return views_.begin(); }
  auto end() const noexcept { return views_.end(); }
  std::size_t size() const noexcept { return views_.size(); }
  bool empty() const noexcept { return views_.empty(); }
  View &operator[](std::size_t index) const noexcept { return *views_[index]; }

 private:
  std::vector<std::unique_ptr<View>> views_;
  std::unordered_multimap<std::uint64_t, View *> by_key_;
};

}  // namespace bulkhead
