// Holds the message to evaluate and the values of its roots (see roots.hpp). A value is computed
// when a rule first reads it. Memory is reused for the next message. Single-threaded. The limits of
// JsonText apply.
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

// Returns the bits of all roots that contain the message body of an event.
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

// Serializes a value without white space.
std::string json_of(const rapidjson::Value &value);

class Question {
 public:
  using Values = std::array<cel::Value, kRoots>;

  explicit Question(std::function<std::uint64_t()> unix_ms) : unix_ms_(std::move(unix_ms)) {}

  // Sets the message to evaluate. All strings are borrowed until the next begin(). `result` is used
  // only if `event` is response.
  void begin(Event event, const Call &call, std::string_view result = {});
  // Marks all values that can differ between calls from one principal to one target as unknown. A
  // condition that reads such a value evaluates to an error, unless another operand of && or ||
  // decides the result.
  void hide_what_differs();
  // Marks the values that only requests have, such as the arguments, as unknown. Must be called
  // after begin(Event::request), before fill().
  void hide_request();
  // Releases the trees of the arguments and of the body.
  void clear_texts();

  Event event() const noexcept { return event_; }
  const Call &call() const noexcept { return *call_; }
  // Returns the result if the event is a response, an empty string if it is a request, and the body
  // of any other event.
  std::string_view body() const noexcept { return body_; }
  // Returns the JSON that a rule may rewrite: the arguments of a request, or body().
  std::string_view changeable() const noexcept;
  // Returns true if hide_what_differs() has been called.
  bool is_partial() const noexcept { return filled_ == ~0ull; }

  // Computes the values of those slots that have not been computed yet. Slots of the arguments or
  // the body require a successful parse_arguments() or parse_body(). If another value is
  // unavailable, its slot contains an error value.
  void fill(std::uint64_t slots);
  const Values &values() const noexcept { return values_; }
  // Each function returns nullptr on success, or the reason why the JSON cannot be evaluated.
  const char *parse_arguments();
  const char *parse_body();

  // Finds the hosts in all parts of the request. Returns nullptr on success, otherwise the error.
  const char *find_hosts();
  const std::set<std::string> &hosts() const noexcept { return hosts_; }
  void use_hosts(const std::set<std::string> &found) { hosts_ = found; }
  // Moves the hosts out of this object. Returns an empty set if find_hosts() has not succeeded.
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
