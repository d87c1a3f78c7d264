// The profile's policy without a gateway: it is asked what it would decide, and decides nothing.
//
// Thread: one.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "command_line/arguments.hpp"
#include "plugin/instance.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

// Configured, never started.
class LonePolicy {
 public:
  explicit LonePolicy(const Arguments &arguments) : arguments_(arguments) {}

  // False: the mistakes have been printed.
  bool load();
  // bh_explain.explain(): `call` and the answer are JSON.
  Result<std::string> explain(std::string_view call) const;
  const std::string &name() const { return name_; }
  const std::string &file() const { return file_; }

 private:
  static bool refuse(const std::vector<std::string> &lines);

  const Arguments &arguments_;
  std::string name_, file_;
  std::vector<std::string> mistakes_;
  std::unique_ptr<Reactor> reactor_;
  HostContext context_;
  std::unique_ptr<Instance> instance_;
};

// A member of a JSON object that is a string; empty: it is not.
std::string text_member(std::string_view object, std::string_view key);

}  // namespace bulkhead::program
