#include "sessions.hpp"

#include <sys/random.h>

#include <algorithm>

#include "bulkhead/cpp/text.hpp"

namespace transport_http {

namespace {

constexpr std::size_t digits = 32;  // digits of an id

// Parses lowercase hexadecimal digits.
std::optional<std::uint64_t> parse_hex(std::string_view text) noexcept {
  std::uint64_t value = 0;
  for (const char c : text) {
    const bool letter = c >= 'a' && c <= 'f';
    if (!letter && !bh::is_digit(c)) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(letter ? c - 'a' + 10 : c - '0');
  }
  return value;
}

}  // namespace

std::optional<SessionId> SessionId::random() noexcept {
  std::array<std::uint64_t, 2> words;
  if (::getrandom(words.data(), sizeof words, 0) != static_cast<ssize_t>(sizeof words)) {
    return std::nullopt;
  }
  return SessionId{words[0], words[1]};
}

std::optional<SessionId> SessionId::parse(std::string_view text) noexcept {
  if (text.size() < digits || (text.size() > digits && text[digits] != '.')) return std::nullopt;
  const auto high = parse_hex(text.substr(0, 16));
  const auto low = parse_hex(text.substr(16, 16));
  if (!high || !low) return std::nullopt;
  return SessionId{*high, *low};
}

std::string SessionId::text() const {
  static constexpr char hex[] = "0123456789abcdef";
  std::string out(digits, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = hex[high >> (60 - 4 * i) & 15];
    out[16 + i] = hex[low >> (60 - 4 * i) & 15];
  }
  return out;
}

Stream *Session::find(std::uint64_t number) noexcept {
  for (Stream &stream : streams) {
    if (stream.number == number) return &stream;
  }
  return nullptr;
}

void Session::erase(std::uint64_t number) noexcept {
  const auto it = std::find_if(streams.begin(), streams.end(),
                               [&](const Stream &stream) { return stream.number == number; });
  if (it == streams.end()) return;
  *it = streams.back();
  streams.pop_back();
}

Session &Sessions::add(bh_session handle, const SessionId &id) {
  auto &slot = by_handle_[handle];
  slot = std::make_unique<Session>();
  slot->handle = handle;
  slot->id = id;
  return *slot;
}

Session *Sessions::find(bh_session handle) noexcept {
  const auto it = by_handle_.find(handle);
  return it == by_handle_.end() ? nullptr : it->second.get();
}

Session *Sessions::find(std::string_view text) noexcept {
  const auto id = SessionId::parse(text);
  if (!id) return nullptr;
  const auto it = by_id_.find(*id);
  return it == by_id_.end() ? nullptr : it->second;
}

void Sessions::forget(Session &session) {
  if (session.ended) return;
  session.ended = true;
  const auto published = by_id_.find(session.id);
  if (published != by_id_.end() && published->second == &session) by_id_.erase(published);
  const auto it = by_handle_.find(session.handle);
  forgotten_.push_back(std::move(it->second));
  by_handle_.erase(it);
}

}  // namespace transport_http
