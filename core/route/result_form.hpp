// The form of answers for the clients of one protocol generation. The client edge of the generation
// sets it in the reply address of a request (ReplyTo::form). Without a form, answers are sent
// unchanged.
//
// Used on the I/O thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bulkhead {

class ResultForm {
 public:
  virtual ~ResultForm() = default;
  // Returns the members to insert before the other members of a result, without braces. `result` is
  // the JSON object of the server or the gateway; empty for a list. The text is valid until the
  // next request is handled.
  virtual std::string_view members(std::string_view result) const = 0;

  // The code and the HTTP status of an error that a server or the gateway reports with this code.
  struct ErrorForm {
    std::int32_t code = 0;
    std::uint32_t http_status = 0;
  };
  virtual ErrorForm error(std::int32_t code) const = 0;
};

// Returns true if a comma must follow members that are inserted before those of this JSON object.
bool has_members(std::string_view object) noexcept;
// Returns the result with the members of the form.
std::string formed_result(const ResultForm &form, std::string_view result);

}  // namespace bulkhead
