// What all tools of this plugin are: a definition, a request that the arguments ask for, and a
// result made from the response. One file for each; tools.cpp lists them.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

// One call of a tool.
class Task {
 public:
  virtual ~Task() = default;

  // What is asked; used up before the response comes.
  Request request;

  // The result of the call, JSON. Thread: any, once; looks at cancelled at least every few
  // milliseconds.
  virtual std::string result(Response &response, const std::atomic<bool> &cancelled) const = 0;
};

struct Tool {
  std::string_view name;
  std::string (*definition)();  // JSON, as tools/list has it

  // arguments: JSON as it came. nullptr: *problem is a sentence.
  std::unique_ptr<Task> (*make)(std::string_view arguments, std::string *problem);
};

extern const Tool fetch_tool, grep_tool, headers_tool;
extern const Tool get_tool, post_tool, put_tool, patch_tool, delete_tool, head_tool;

}  // namespace builtin_http
