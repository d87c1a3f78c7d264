// Runs a function once at the end of the current iteration of the event loop, even if it is
// requested several times. Must be used on the reactor thread.
#pragma once

#include <functional>
#include <utility>

#include "reactor/reactor.hpp"

namespace bulkhead {

class OncePerTurn {
 public:
  OncePerTurn(Reactor &reactor, std::function<void()> function)
      : reactor_(reactor), function_(std::move(function)) {}
  ~OncePerTurn() { reactor_.forget(this); }
  OncePerTurn(const OncePerTurn &) = delete;
  OncePerTurn &operator=(const OncePerTurn &) = delete;

  void ask() {
    if (std::exchange(asked_, true)) return;
    reactor_.defer(this, bh::callback(this, [](OncePerTurn &self) {
                     self.asked_ = false;
                     self.function_();
                   }));
  }

 private:
  Reactor &reactor_;
  const std::function<void()> function_;
  bool asked_ = false;
};

}  // namespace bulkhead
