// How results are sent to the clients of one protocol generation. The client edge of the generation
// sets it in the reply address of a request (ReplyTo::form); without one, results are sent as they
// are. Thread: I/O thread.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

class ResultForm {
 public:
  virtual ~ResultForm() = default;
  // The members that are added in front of the others of a result, without braces. `result`: the
  // JSON object of the server or the gateway; empty: a list. The text is valid as long as the form,
  // which outlives every request.
  virtual std::string_view members(std::string_view result) const = 0;
};

// The text to insert behind the brace of the result; empty: none.
std::string members_in_front(const ResultForm &form, std::string_view result);
// The result with these members.
std::string formed_result(const ResultForm &form, std::string_view result);

}  // namespace bulkhead
