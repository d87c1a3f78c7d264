// The message to evaluate, and the values of its roots. Each value is computed when a rule first
// reads it. Single-threaded; memory is reused between messages. The limits are those of JsonText.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "call.hpp"
#include "cel/value.hpp"
#include "json_text.hpp"
#include "roots.hpp"

namespace bulkhead::rules {

// Returns the body roots that rules for an event can read.
constexpr std::uint64_t body_bits(Event event) {
  switch (event) {
    case Event::request:
      return kArgumentBits | bit(kMeta) | kBesideBits;
    case Event::response:
      return kResultBits;
    case Event::input_response:
      return kBodyBits | bit(kInputAction);
    default:
      return kBodyBits;
  }
}

// Returns the value as JSON without white space.
std::string json_of(const rapidjson::Value &value);

class Question {
 public:
  using Values = std::array<cel::Value, kRoots>;

  explicit Question(std::function<std::uint64_t()> unix_ms) : unix_ms_(std::move(unix_ms)) {}

  // The strings are borrowed until the next begin(). `result` is set only for a response.
  void begin(Event event, const Call &call, std::string_view result = {});
  // Makes values unknown if they may differ in another call by the same principal to the same
  // target. Conditions that depend on these values also become unknown, unless && or || decides
  // without them.
  void hide_what_differs();
  // Releases the trees of large documents.
  void clear_texts();

  Event event() const noexcept { return event_; }
  const Call &call() const noexcept { return *call_; }
  // Returns the result of a response, or the body of another event. For a request, the result is
  // empty.
  std::string_view body() const noexcept { return body_; }
  // Returns the text that a rule may rewrite.
  std::string_view changeable() const noexcept;
  // Returns true if hide_what_differs() was called.
  bool is_partial() const noexcept { return filled_ == ~0ull; }

  // Sets the given slots unless they are already set. Unavailable values are error values.
  void fill(std::uint64_t slots);
  const Values &values() const noexcept { return values_; }
  // These functions return nullptr on success, or the reason why the text cannot be evaluated.
  const char *parse_arguments();
  const char *parse_body();

  // Finds the hosts in the whole request. Returns nullptr on success, otherwise the error.
  const char *find_hosts();
  const std::set<std::string> &hosts() const noexcept { return hosts_; }
  void use_hosts(const std::set<std::string> &found) { hosts_ = found; }
  // Returns an empty set unless find_hosts() has succeeded.
  std::set<std::string> take_hosts();

 private:
  void fill_arguments(bool as_text);
  void fill_beside();
  void fill_definition();
  void fill_response();
  void fill_body();

  const std::function<std::uint64_t()> unix_ms_;
  JsonText arguments_, meta_, definition_, result_, argument_, context_, extra_;
  const Call *call_ = nullptr;
  std::string_view body_;
  Event event_ = Event::request;
  Values values_;
  std::uint64_t filled_ = 0;
  const char *arguments_fault_ = nullptr, *body_fault_ = nullptr;
  bool arguments_parsed_ = false, body_parsed_ = false;
  std::string session_id_, uri_normalized_, arguments_text_, response_text_;
  std::set<std::string> hosts_;
  bool hosts_known_ = false;
};

}  // namespace bulkhead::rules
