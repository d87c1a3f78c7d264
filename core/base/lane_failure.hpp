// Why an exchange with a server has failed, or why its conversation is over: a copy of a
// bh_lane_failure. The challenges and the scope were written by the server and are not verified.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/cpp/basics.hpp"

namespace bulkhead {

struct LaneFailure {
  LaneFailure(Error e, std::uint32_t retry_ms = 0)
      : error(std::move(e)), retry_after_ms(retry_ms) {}
  LaneFailure(bh_status code, std::string text) : error{code, std::move(text)} {}
  // Copies a connector's failure, up to the limits of BH_CHALLENGE_COUNT and BH_CHALLENGE_BYTES. A
  // null pointer, or a failure without an error, becomes BH_E_INTERNAL.
  explicit LaneFailure(const bh_lane_failure *from) : error{BH_E_INTERNAL, "no reason given"} {
    if (from == nullptr) return;
    if (from->error != nullptr) {
      error = {from->error->code, std::string(bh::text(*from->error))};
      retry_after_ms = from->error->retry_after_ms;
    }
    http_status = from->http_status;
    for (std::uint32_t i = 0; i < from->challenge_count; ++i) {
      if (!add_challenge(bh::view(from->challenges[i]))) break;
    }
    set_scope(bh::view(from->scope));
  }

  // Omits a value that exceeds BH_CHALLENGE_BYTES. Returns false if there is no room for another.
  bool add_challenge(std::string_view value) {
    if (challenges.size() == BH_CHALLENGE_COUNT) return false;
    std::size_t used = 0;
    for (const std::string &one : challenges) used += one.size();
    if (value.size() <= BH_CHALLENGE_BYTES - used) challenges.emplace_back(value);
    return true;
  }
  // Omits a scope that is too long or not printable ASCII.
  void set_scope(std::string_view value) {
    const bool valid =
        value.size() <= BH_CHALLENGE_BYTES &&
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
    if (valid) scope = value;
  }

  Error error;
  std::uint32_t retry_after_ms = 0, http_status = 0;
  std::vector<std::string> challenges;
  std::string scope;
};

}  // namespace bulkhead
