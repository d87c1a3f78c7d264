// The form of results for the clients of one protocol generation. The client edge of the generation
// sets it in the reply address of a request (ReplyTo::form). Without a form, results are sent
// unchanged.
//
// Used on the I/O thread.
#pragma once

#include <string>
#include <string_view>

namespace bulkhead {

class ResultForm {
 public:
  virtual ~ResultForm() = default;
  // Returns the members to insert before the other members of a result, without braces. `result` is
  // the JSON object of the server or the gateway; empty for a list. The text is valid for the
  // lifetime of the form, which outlives every request.
  virtual std::string_view members(std::string_view result) const = 0;
};

// Returns the text to insert after the opening brace of the result; empty if there is none.
std::string members_in_front(const ResultForm &form, std::string_view result);
// Returns the result with these members.
std::string formed_result(const ResultForm &form, std::string_view result);

}  // namespace bulkhead
