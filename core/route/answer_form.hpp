// Validates the responses from servers of one protocol generation, and converts them for clients of
// another. Servers with sessions have no AnswerForm: their responses are sent without this
// conversion.
//
// Thread-safe: implementations have no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/message.hpp"
#include "route/protocol.hpp"
#include "route/splice.hpp"

namespace bulkhead {

// The replacement for an error from a server.
struct ReplacedError {
  std::int32_t error_code = 0;  // 0: the text is sent as by CallEnds::fail_as_result()
  std::string text;             // empty: only the code is replaced
};

// The client that receives an error.
struct ErrorRecipient {
  ClientCaps caps = 0;           // declared by the client
  bool same_generation = false;  // the client belongs to the server's protocol generation
};

class AnswerForm {
 public:
  virtual ~AnswerForm() = default;

  // Returns an error message if this result is not a valid response to the method, and an empty
  // string otherwise. `task` is true if the server may respond with a task. The message is phrased
  // to follow 'server "x" '.
  virtual std::string problem(const Message &answer, mcp::Method method, bool task) const = 0;

  // Returns true if the error may mean that the server belongs to another protocol generation. Such
  // a server may send this error in response to any request.
  virtual bool is_foreign(const Message &answer) const = 0;
  // Returns true if the error reports that headers do not match the body. This can happen after a
  // tool's definition has changed, because the headers that mirror its arguments then no longer
  // match.
  virtual bool is_header_mismatch(const Message &answer) const = 0;
  // Returns true if the result asks the client for input, so the call is not finished.
  virtual bool is_interim(const Message &answer) const = 0;

  // ---- for clients of the revisions with a session ----
  // Edits a result. *room stores new text and must outlive the splice.
  virtual void edit(const Message &answer, Splice *splice, std::string *room) const = 0;
  // Like edit(), but for the text of a result that is not part of a message. Returns the edited
  // text.
  virtual std::string edited(std::string_view result) const = 0;

  // Returns what a client of any generation receives instead of `error` (a JSON object), or nullopt
  // if the client receives the error unchanged.
  virtual std::optional<ReplacedError> replace(mcp::Method method, std::string_view error,
                                               const ErrorRecipient &client) const = 0;
};

// Returns the AnswerForm for servers of revision 2026-07-28.
const AnswerForm &stateless_answer_form() noexcept;

}  // namespace bulkhead
