// The form of the answers of servers of one protocol generation, and its conversion for clients of
// another one. Sessions' servers have no form of their own: their answers are sent unchanged.
//
// Thread-safe: forms have no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/message.hpp"
#include "route/splice.hpp"

namespace bulkhead {

// What replaces an error of a server.
struct ReplacedError {
  std::int32_t error_code = 0;  // 0: `text` is a result
  std::string text;             // empty: only the code is replaced
};

class AnswerForm {
 public:
  virtual ~AnswerForm() = default;

  // Returns why this result is not a valid answer to the method, to follow 'server "x" '; empty if
  // it is valid.
  virtual std::string problem(const Message &answer, mcp::Method method) const = 0;

  // Returns true for an error that a server of another generation may send to any request.
  virtual bool is_foreign(const Message &answer) const = 0;
  // Returns true for an error about headers that differ from the body, as those of arguments do if
  // the tool's definition has changed.
  virtual bool is_header_mismatch(const Message &answer) const = 0;
  // Returns true if the call continues: the result asks the client for input.
  virtual bool is_interim(const Message &answer) const = 0;

  // ---- for clients of the revisions with a session ----
  // Edits a result. *room stores the new text, which must outlive the splice.
  virtual void edit(const Message &answer, Splice *splice, std::string *room) const = 0;
  // The same for the text of a result that is not part of a message.
  virtual std::string edited(std::string_view result) const = 0;

  // Returns what a client receives instead of this error (a JSON object); nullopt if it receives
  // the error itself. same_generation: the client's generation is the server's.
  virtual std::optional<ReplacedError> replace(mcp::Method method, std::string_view error,
                                               bool same_generation) const = 0;
};

// The form of revision 2026-07-28.
const AnswerForm &stateless_answer_form() noexcept;

}  // namespace bulkhead
