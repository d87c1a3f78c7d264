// Implements the live list of `bulkhead approvals watch`: selection, keys and drawing. Does not
// access the terminal itself. Used on one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// A pending approval request or a granted approval, as received from a gateway. All strings except
// `json` are printable.
struct SeenQuestion {
  std::string socket;  // service socket of the gateway
  std::string id, server, method, name, arguments, meta, extra, rule, reason;
  std::string process_name, principal, transport;
  std::string claimed_name;  // the name that the client claims; not verified
  bool arguments_cut = false;
  std::uint64_t arguments_bytes = 0, expires_in_ms = 0;
  std::string scope;  // of a granted approval, for example "session" or "tool for 10 minutes"
  std::string json;   // the JSON object as received
};

// Parses the member named `list` ("pending" or "granted") in a response to /confirm/pending.
// Returns nullopt if the response does not have the expected format.
std::optional<std::vector<SeenQuestion>> read_questions(const std::string &socket,
                                                        std::string_view json,
                                                        std::string_view list = "pending");

// Returns the arguments, followed by the other members of `params`.
std::string all_params(const SeenQuestion &question);

// Formats pending requests as a table. Returns an empty string if there are none.
std::string questions_table(const std::vector<SeenQuestion> &questions);
// Returns a message that lists the requests that are still pending when the watch ends and explains
// how to approve or deny them. Returns an empty string if there are none.
std::string pending_text(const std::vector<SeenQuestion> &questions);
std::string grants_table(const std::vector<SeenQuestion> &grants);

class ApprovalsView {
 public:
  // After show() has selected a different request, the keys that answer it are ignored for this
  // long, because the user may have pressed them for the previous request.
  static constexpr std::uint64_t settle_ms = 700;
  static constexpr std::uint32_t tool_minutes = 10;

  struct Action {
    enum class Kind : std::uint8_t { none, quit, answer } kind = Kind::none;
    SeenQuestion question;  // set if `kind` is answer
    bool allow = false;
    char scope = 'a';  // the pressed key: a = once, s = session, t = tool for tool_minutes
  };

  void show(std::vector<SeenQuestion> questions, std::uint64_t now_ms);
  // Handles a key in the terminal's encoding, such as "a" or "\x1b[A".
  Action key(std::string_view key, std::uint64_t now_ms);
  // Shows a message below the list until the next key is pressed.
  void show_message(std::string text) { message_ = std::move(text); }
  // Returns the contents of the screen: at most `rows` lines of at most `columns` characters each.
  // Fewer than 8 rows count as 8.
  std::string draw(std::size_t columns, std::size_t rows) const;

 private:
  const SeenQuestion *selected() const;
  void select(std::size_t index, std::uint64_t since_ms);
  void add_details(const SeenQuestion &question, std::size_t columns, std::size_t rows,
                   std::vector<std::string> *lines) const;

  std::vector<SeenQuestion> questions_;
  std::string selected_id_;
  std::uint64_t since_ms_ = 0;  // when the request was selected
  std::string message_;
};

}  // namespace bulkhead::program
