// Posts functions with captured state to the reactor thread.
#pragma once

#include <memory>
#include <utility>

#include "reactor/reactor.hpp"

namespace bulkhead {

// Calls f on the reactor thread, after the current events have been handled. f must own the data
// that it captures. If the reactor is destroyed, or forgets `owner`, f is destroyed without being
// called. If the queue is full, f is destroyed immediately, and BH_E_LIMIT is returned.
template <class F>
bh_status post_owned(Reactor &reactor, const void *owner, F f) {
  auto task = std::make_unique<F>(std::move(f));
  const bh_status status = reactor.post(
      owner,
      [](void *arg) {
        const std::unique_ptr<F> owned(static_cast<F *>(arg));
        (*owned)();
      },
      task.get(), [](void *arg) { delete static_cast<F *>(arg); });
  if (status == BH_OK) static_cast<void>(task.release());
  return status;
}

}  // namespace bulkhead
