// What the configurations of these plugins are read with.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace egress {

// A number of a plugin's own configuration, with its bounds.
template <class Config>
struct Number {
  std::string_view key;
  std::uint64_t Config::*place;
  std::uint64_t least, most;

  // What is wrong with `value`, with the key's name; empty: it is in `out`.
  std::string read(const rapidjson::Value &value, Config *out) const {
    const bool fits = value.IsUint64() && value.GetUint64() >= least && value.GetUint64() <= most;
    if (!fits) {
      return std::string(key) + ": " + std::to_string(least) + " to " + std::to_string(most) +
             " is needed";
    }
    out->*place = value.GetUint64();
    return {};
  }
};

inline std::string_view text_of(const rapidjson::Value &value) {
  return {value.GetString(), value.GetStringLength()};
}

}  // namespace egress
