// Interface of all tools of this plugin: a definition, a request built from the arguments, and a
// result built from the response. One file per tool; tools.cpp lists them.
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

  // The request to send; consumed before the response arrives.
  Request request;

  // Returns the result of the call as JSON. Polls cancelled at least every few milliseconds.
  // Thread: any, once.
  virtual std::string result(Response &response, const std::atomic<bool> &cancelled) const = 0;
};

struct Tool {
  std::string_view name;
  std::string (*definition)();  // JSON, as in tools/list

  // arguments: JSON as received. nullptr: *problem is a sentence.
  std::unique_ptr<Task> (*make)(std::string_view arguments, std::string *problem);
};

extern const Tool fetch_tool, grep_tool, headers_tool;
extern const Tool get_tool, post_tool, put_tool, patch_tool, delete_tool, head_tool;

}  // namespace builtin_http
