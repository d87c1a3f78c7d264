// Defines the form of responses in one protocol generation. The client edge stores the form in the
// reply address of a request (ReplyTo::form). If a reply address has no form, responses are sent
// unchanged.
//
// Used on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "route/list_hints.hpp"
#include "route/message.hpp"

namespace bulkhead {

class ResultForm {
 public:
  virtual ~ResultForm() = default;
  // Returns members to insert at the beginning of a result, without braces. `result` is the result
  // object. The returned text is valid until the next request is handled.
  virtual std::string_view members(std::string_view result) const = 0;
  // The same for a server's result.
  virtual std::string_view members(const Message &answer) const = 0;
  // Returns the members to insert into a list result that the gateway has composed, without braces.
  virtual std::string list_members(const ListHints &hints) const = 0;

  // The error code and HTTP status that the client receives for an error with the given code.
  struct ErrorForm {
    std::int32_t code = 0;
    std::uint32_t http_status = 0;
  };
  virtual ErrorForm error(std::int32_t code) const = 0;
};

// Returns true if the object has members. Text that is inserted before them must then end with a
// comma.
bool has_members(std::string_view object) noexcept;
// Returns a copy of the result with the members from form.members() inserted.
std::string formed_result(const ResultForm &form, std::string_view result);

}  // namespace bulkhead
