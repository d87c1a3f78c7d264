// Checks large JSON values for duplicate object members before a policy evaluates them. The checks
// run on the blocking thread pool.
//
// Owner: the Router. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "reactor/reactor.hpp"

namespace bulkhead {

// A copy of the text of a parked message. The pool may read it after the call has finished.
using KeptText = std::shared_ptr<const std::string>;
inline KeptText kept(std::string_view text) {
  return std::make_shared<const std::string>(text);
}

class DuplicateChecks {
 public:
  // Callers check text up to this size synchronously, which takes a few hundred microseconds.
  static constexpr std::size_t at_once = std::size_t{128} << 10;

  // Called on the reactor thread, once for each check, unless this object has been destroyed.
  // `duplicates` is also true if there was not enough memory for the check.
  using Found = std::function<void(std::uint64_t number, bool duplicates)>;
  DuplicateChecks(Reactor &reactor, Found found);
  ~DuplicateChecks();
  DuplicateChecks(const DuplicateChecks &) = delete;
  DuplicateChecks &operator=(const DuplicateChecks &) = delete;

  // Starts a check. `part` must be valid JSON and must point into `text`. Returns false if the pool
  // is full.
  bool begin(std::uint64_t number, KeptText text, std::string_view part);

 private:
  struct Check;

  Reactor &reactor_;
  // Running checks hold weak pointers to detect destruction.
  const std::shared_ptr<const Found> found_;
};

}  // namespace bulkhead
