// Reads the configuration values of egress plugins.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace egress {

// A configuration key whose value is a number, and the range of allowed values.
template <class Config>
struct Number {
  std::string_view key;
  std::uint64_t Config::*place;
  std::uint64_t least, most;

  // Stores `value` in `out`. Returns an error message that names the key, or an empty string on
  // success.
  std::string read(const rapidjson::Value &value, Config *out) const {
    const bool fits = value.IsUint64() && value.GetUint64() >= least && value.GetUint64() <= most;
    if (!fits) {
      return std::string(key) + ": must be from " + std::to_string(least) + " to " +
             std::to_string(most);
    }
    out->*place = value.GetUint64();
    return {};
  }
};

inline std::string_view text_of(const rapidjson::Value &value) {
  return {value.GetString(), value.GetStringLength()};
}

// A value that is allowed in a list, and the flag that it sets.
template <class Config>
struct Word {
  std::string_view text;
  bool Config::*place;
};

// Reads a list of one or more strings. Only the two strings in `words` are allowed. Sets the flags
// of the strings in the list and clears the other flag. Returns an error message that names the
// key, or an empty string on success.
template <class Config>
std::string read_words(std::string_view key, const Word<Config> (&words)[2],
                       const rapidjson::Value &value, Config *out) {
  std::string bad = std::string(key) + ": must be a list of \"" + std::string(words[0].text) +
                    "\" and \"" + std::string(words[1].text) + "\"";
  if (!value.IsArray() || value.Empty()) return bad;
  for (const auto &word : words) out->*word.place = false;
  for (const rapidjson::Value &each : value.GetArray()) {
    const std::string_view text = each.IsString() ? text_of(each) : std::string_view();
    if (text != words[0].text && text != words[1].text) return bad;
    out->*(text == words[0].text ? words[0] : words[1]).place = true;
  }
  return {};
}

// Parses `json` into `root` and calls read_key for each member. Returns the first error message, or
// an empty string on success.
template <class Config>
std::string read_object(std::string_view json, rapidjson::Document *root, Config *out,
                        std::string (*read_key)(std::string_view key, const rapidjson::Value &,
                                                Config *)) {
  root->Parse<rapidjson::kParseIterativeFlag>(json.data(), json.size());
  if (root->HasParseError() || !root->IsObject()) return "the configuration is not an object";
  for (const auto &each : root->GetObject()) {
    if (std::string bad = read_key(text_of(each.name), each.value, out); !bad.empty()) return bad;
  }
  return {};
}

}  // namespace egress
