// Checks a plugin against the rules in rules.hpp: first its files, then its code in child
// processes.
#pragma once

#include <string>

#include "base/result.hpp"
#include "check/report.hpp"

namespace bulkhead::check {

struct CheckOptions {
  std::string config = "{}";      // the instance's configuration, as a JSON object
  std::string definition = "{}";  // for connectors: the definition of a server, as a JSON object
};

// `path` is a file NAME.so with its manifest in the same folder. Returns an error if the options
// are invalid, or if no child process can be started. Must be called while the process has one
// thread; it forks.
Result<Report> check_plugin(const std::string &path, const CheckOptions &options);

}  // namespace bulkhead::check
