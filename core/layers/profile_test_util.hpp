// Functions for tests of core/profile, core/formats, core/corporation and core/layers.
#pragma once

#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <vector>

#include "layers/load.hpp"

namespace bulkhead::test {

// Returns an environment in which every variable NAME has the value "v-NAME", except variables in
// `values` and those whose names begin with "unset".
inline ProfileEnvironment environment(const std::map<std::string, std::string> &values = {}) {
  ProfileEnvironment out;
  out.home = "/home/u";
  out.getenv = [values](const std::string &name) -> std::optional<std::string> {
    if (const auto found = values.find(name); found != values.end()) return found->second;
    if (name.starts_with("unset")) return std::nullopt;
    return "v-" + name;
  };
  return out;
}

inline Profile good(const std::vector<ProfileLayer> &layers,
                    const std::map<std::string, std::string> &values = {}) {
  auto result = load_profile(layers, environment(values));
  if (auto *errors = std::get_if<std::vector<ProfileError>>(&result)) {
    std::string all;
    for (const ProfileError &error : *errors) all += to_string(error) + "\n";
    FAIL("the profile was refused:\n" << all);
  }
  return std::move(std::get<Profile>(result));
}

inline std::vector<ProfileError> bad(const std::vector<ProfileLayer> &layers,
                                     const std::map<std::string, std::string> &values = {}) {
  auto result = load_profile(layers, environment(values));
  if (std::holds_alternative<Profile>(result)) FAIL("the profile was accepted");
  return std::move(std::get<std::vector<ProfileError>>(result));
}

inline std::string names(const Profile &profile) {
  std::string out;
  for (const ServerDef &server : profile.servers) out += (out.empty() ? "" : " ") + server.name;
  return out;
}

inline bool has(const std::string &text, std::string_view part) {
  INFO(text);
  INFO(part);
  return text.find(part) != std::string::npos;
}

inline Profile::Shown shown(const Profile &profile, const std::string &path) {
  for (const Profile::Shown &value : profile.shown)
    if (value.path == path) return value;
  FAIL("not shown: " << path);
  return {};
}

}  // namespace bulkhead::test
