// Reads the entries of a folder without exceptions. Thread-safe.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "sandbox/paths.hpp"

namespace bulkhead {

// Calls `use` for each entry (std::filesystem::directory_entry). Returns false if there may be
// further entries that could not be read. (A range-for over a directory_iterator would throw.) A
// folder that does not exist has no entries.
template <class Use>
bool for_each_entry(const std::string &folder, Use use) {
  std::error_code error;
  std::filesystem::directory_iterator at(folder, error);
  for (; !error && at != std::filesystem::directory_iterator(); at.increment(error)) use(*at);
  return !error || means_missing(error.value());
}

}  // namespace bulkhead
