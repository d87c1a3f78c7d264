// The live list of `bulkhead approvals watch`, without the terminal: what is selected, what a key
// does, what is drawn. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// One question as a gateway has answered it: printable text.
struct SeenQuestion {
  std::string socket;  // of the gateway
  std::string id, server, method, name, arguments, meta, extra, rule, reason;
  std::string process_name, principal, transport;
  bool arguments_cut = false;
  std::uint64_t arguments_bytes = 0, expires_in_ms = 0;
  std::string json;  // as it came
};

// What a gateway says at /confirm/pending; nothing: it is something else.
std::optional<std::vector<SeenQuestion>> read_questions(const std::string &socket,
                                                        std::string_view json);

// The arguments, and behind them what params has beside.
std::string all_params(const SeenQuestion &question);

// A table for people; empty: there are none.
std::string questions_table(const std::vector<SeenQuestion> &questions);

class ApprovalsView {
 public:
  // What has just come under the hand that types is not answered by the key meant for another.
  static constexpr std::uint64_t settle_ms = 700;

  struct Action {
    enum class Kind : std::uint8_t { none, quit, answer } kind = Kind::none;
    SeenQuestion question;  // of answer
    bool allow = false, session = false;
  };

  void show(std::vector<SeenQuestion> questions, std::uint64_t now_ms);
  // One key as a terminal sends it: "a", "\x1b[A".
  Action key(std::string_view key, std::uint64_t now_ms);
  // The line below the list, until the next key.
  void say(std::string text) { said_ = std::move(text); }
  // The whole screen, lines cut to `columns`, at most `rows`.
  std::string draw(std::size_t columns, std::size_t rows) const;

 private:
  const SeenQuestion *selected() const;
  void select(std::size_t index, std::uint64_t since_ms);
  void add_details(const SeenQuestion &question, std::size_t columns, std::size_t rows,
                   std::vector<std::string> *lines) const;

  std::vector<SeenQuestion> questions_;
  std::string selected_id_;
  std::uint64_t since_ms_ = 0;  // it is selected
  std::string said_;
};

}  // namespace bulkhead::program
