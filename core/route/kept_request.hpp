// The values of a client's request to which a requestState is bound (sealed_state.hpp). They are
// kept with the call if a state may have to be sealed when the text of the request no longer
// exists.
//
// Used on the reactor thread. Limits: the values of a call count if they have more than
// KeptRequest::small bytes. Those of one client may have limits.message_bytes in total, and those
// of all clients KeptBytes::clients times as many. Beyond these limits, nothing is kept, and the
// call's client cannot be asked for input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "profile/profile.hpp"
#include "route/client_load.hpp"

namespace bulkhead {

// Counts the bytes that are kept for calls. Must outlive the calls that are in flight.
class KeptBytes {
 public:
  static constexpr std::uint64_t clients = 4;

  explicit KeptBytes(const Limits &limits) : limits_(limits) {}

  // Counts the bytes and returns true. If a limit would be exceeded, returns false and counts
  // nothing.
  bool take(ClientLoad &load, std::size_t bytes) noexcept {
    const std::uint64_t most = limits_.message_bytes;
    if (load.kept_bytes + bytes > most || bytes_ + bytes > clients * most) return false;
    load.kept_bytes += bytes;
    bytes_ += bytes;
    return true;
  }
  void give_back(ClientLoad &load, std::size_t bytes) noexcept {
    load.kept_bytes -= bytes;
    bytes_ -= bytes;
  }

 private:
  const Limits &limits_;
  std::uint64_t bytes_ = 0;
};

class KeptRequest {
 public:
  static constexpr std::size_t small = 16'384;

  // Copies the values. `target` is the URI, or the name of the tool or prompt as the client wrote
  // it. `arguments` is JSON; empty if absent. If a limit would be exceeded, nothing is kept.
  void keep(KeptBytes &bytes, const std::shared_ptr<ClientLoad> &load, std::string_view target,
            std::string_view arguments) {
    const std::size_t size = target.size() + arguments.size();
    if (size > small) {
      if (!bytes.take(*load, size)) return;
      counter_ = &bytes;
      load_ = load;
      counted_ = size;
    }
    target_.assign(target);
    arguments_.assign(arguments);
    any_ = true;
  }
  bool any() const noexcept { return any_; }
  std::string_view target() const noexcept { return target_; }
  std::string_view arguments() const noexcept { return arguments_; }

  // Strings keep their capacity unless they were counted.
  void clear() noexcept {
    any_ = false;
    target_.clear();
    arguments_.clear();
    if (counted_ == 0) return;
    std::string().swap(target_);
    std::string().swap(arguments_);
    counter_->give_back(*load_, std::exchange(counted_, 0));
    load_ = nullptr;
  }

 private:
  std::string target_, arguments_;
  bool any_ = false;
  std::size_t counted_ = 0;
  KeptBytes *counter_ = nullptr;
  std::shared_ptr<ClientLoad> load_;
};

}  // namespace bulkhead
