// Checks large texts for objects with duplicate members on the blocking pool before a policy
// evaluates the texts.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reactor/reactor.hpp"

namespace bulkhead {

// The text of a parked message. The pool may read it even after the call has ended.
using KeptText = std::shared_ptr<const std::string>;
inline KeptText kept(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

class DuplicateChecks {
 public:
  // Texts up to this size are checked on the reactor thread. This takes a few hundred microseconds.
  static constexpr std::size_t at_once = std::size_t{128} << 10;

  // Called on the reactor thread once for each started check unless this object has been destroyed.
  using Found = std::function<void(std::uint64_t number, bool duplicates)>;
  DuplicateChecks(Reactor &reactor, Found found);
  ~DuplicateChecks();
  DuplicateChecks(const DuplicateChecks &) = delete;
  DuplicateChecks &operator=(const DuplicateChecks &) = delete;

  // Starts a check; `part` of the text is valid JSON. Returns false if the pool is full.
  bool begin(std::uint64_t number, KeptText text, std::string_view part);

 private:
  struct Check;

  Reactor &reactor_;
  const std::shared_ptr<const Found> found_;  // running checks test whether it still exists
};

}  // namespace bulkhead
