#include "peek.hpp"

#include "bulkhead/cpp/json_reader.hpp"

namespace connector_http {
namespace {

// Returns true if the message has a "result" or "error" member. Ignores members after the member
// `stop`.
bool has_outcome(std::string_view message, std::string_view stop = {}) noexcept {
  bool found = false;
  bh::json::for_each_member(message, [&](std::string_view key) {
    found = key == R"("result")" || key == R"("error")";
    return !found && key != stop;
  });
  return found;
}

}  // namespace

bool is_response(std::string_view message) noexcept {
  return has_outcome(message, R"("method")");
}

bool answers_a_request(std::string_view message) noexcept {
  const std::string_view id = bh::json::member(message, "id");
  const bool text_or_number =
      id.starts_with('"') || id.starts_with('-') || (!id.empty() && bh::is_digit(id.front()));
  return text_or_number && has_outcome(message);
}

bool answers(std::string_view message, std::uint64_t id) noexcept {
  std::uint64_t number = 0;
  return bh::json::read_integer(bh::json::member(message, "id"), &number) && number == id &&
         has_outcome(message);
}

bool holds_response(std::string_view message) noexcept {
  if (!is_batch(message)) return is_response(message);
  bool found = false;
  const bool whole = bh::json::for_each_element(
      message, [&](std::string_view element) { return !(found = is_response(element)); });
  return found || !whole;  // if the batch is malformed, the receiver reports it
}

bool is_batch(std::string_view message) noexcept {
  return bh::json::trimmed(message).starts_with('[');
}

bool mentions(std::string_view text, std::string_view word) noexcept {
  for (std::size_t i = 0; i + word.size() <= text.size(); ++i) {
    if (bh::starts_with_ignoring_case(text.substr(i), word)) return true;
  }
  return false;
}

}  // namespace connector_http
