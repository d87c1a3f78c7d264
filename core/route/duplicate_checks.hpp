// Looks for objects that have one member twice in texts that are too large for the loop: on the
// pool, before a policy is asked about them. Owner: the Router. Thread: [io].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reactor/reactor.hpp"

namespace bulkhead {

// A message that somebody waits with; the pool may read it after they have given it up.
using KeptText = std::shared_ptr<const std::string>;
inline KeptText kept(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

class DuplicateChecks {
 public:
  // What is not larger is looked at on the loop: some hundred microseconds.
  static constexpr std::size_t at_once = std::size_t{128} << 10;

  // Called on the loop, once for each check that was begun; not after the end of this.
  using Found = std::function<void(std::uint64_t number, bool duplicates)>;
  DuplicateChecks(Reactor &reactor, Found found);
  ~DuplicateChecks();
  DuplicateChecks(const DuplicateChecks &) = delete;
  DuplicateChecks &operator=(const DuplicateChecks &) = delete;

  // `part`: of the text, valid JSON. False: the pool has no place.
  bool begin(std::uint64_t number, KeptText text, std::string_view part);

 private:
  struct Check;

  Reactor &reactor_;
  const std::shared_ptr<const Found> found_;  // checks under way look whether it is still there
};

}  // namespace bulkhead
