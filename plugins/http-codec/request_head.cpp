#include "http-codec/request_head.hpp"

#include <algorithm>
#include <cstring>

#include "http-codec/text.hpp"

namespace http_codec {

namespace {

Method method_of(std::string_view name) noexcept {
  if (name == "POST") return Method::post;
  if (name == "GET") return Method::get;
  if (name == "DELETE") return Method::del;
  if (name == "OPTIONS") return Method::options;
  if (name == "HEAD") return Method::head;
  return Method::other;
}

void take_accept(RequestHead &head, std::string_view value) noexcept {
  head.has_accept = true;
  for_each_element(value, [&](std::string_view type) {
    const bool any = type == "*/*";
    if (any || equal_ignoring_case(type, "application/json") || type == "application/*") {
      head.accepts_json = true;
    }
    if (any || equal_ignoring_case(type, "text/event-stream") || type == "text/*") {
      head.accepts_events = true;
    }
  });
}

void take_connection(RequestHead &head, std::string_view value) noexcept {
  for_each_element(value, [&](std::string_view option) {
    if (equal_ignoring_case(option, "close")) head.close = true;
    if (equal_ignoring_case(option, "keep-alive")) head.keep_alive = true;
  });
}

}  // namespace

HeadParser::Result HeadParser::advance(std::string_view data) noexcept {
  if (status_ != 0) return Result::error;
  if (done_) return Result::done;
  const std::size_t visible = std::min<std::size_t>(data.size(), limit_);
  while (true) {
    // Bytes that cannot start a request (a TLS hello, say) are refused before a line feed comes.
    if (!request_line_ && line_ < visible && data[line_] != '\r' && !is_token_char(data[line_])) {
      refuse(400);
      return Result::error;
    }
    const void *found = visible > scanned_
                            ? std::memchr(data.data() + scanned_, '\n', visible - scanned_)
                            : nullptr;
    if (found == nullptr) {
      scanned_ = static_cast<std::uint32_t>(visible);
      if (visible < limit_) return Result::more;
      refuse(431);
      return Result::error;
    }
    const auto end = static_cast<std::size_t>(static_cast<const char *>(found) - data.data());
    if (!take_line(data, end)) return Result::error;
    line_ = scanned_ = static_cast<std::uint32_t>(end + 1);
    if (done_) return Result::done;
  }
}

bool HeadParser::take_line(std::string_view data, std::size_t end) noexcept {
  if (end == line_ || data[end - 1] != '\r') return refuse(400);
  const std::string_view line = data.substr(line_, end - 1 - line_);
  if (!request_line_) {
    if (!line.empty()) return request_line_ = take_request_line(line, line_);
    if (skipped_line_) return refuse(400);
    return skipped_line_ = true;
  }
  if (!line.empty()) return take_field(line, line_);
  head_.bytes = static_cast<std::uint32_t>(end + 1);
  return finish();
}

bool HeadParser::take_request_line(std::string_view line, std::uint32_t at) noexcept {
  std::size_t i = 0;
  while (i < line.size() && is_token_char(line[i])) ++i;
  if (i == 0 || i == line.size() || line[i] != ' ') return refuse(400);
  head_.method = method_of(line.substr(0, i));
  const std::size_t start = i + 1;
  const std::size_t end = line.find(' ', start);
  if (end == std::string_view::npos || end == start) return refuse(400);
  const std::string_view version = line.substr(end + 1);
  if (version == "HTTP/1.1") {
    head_.minor = 1;
  } else if (version == "HTTP/1.0") {
    head_.minor = 0;
  } else {
    const bool other_version = version.size() == 8 && version.starts_with("HTTP/") &&
                               version[6] == '.' && version[5] >= '0' && version[5] <= '9' &&
                               version[7] >= '0' && version[7] <= '9';
    return refuse(other_version ? 505 : 400);
  }
  return take_target(line.substr(start, end - start), at + static_cast<std::uint32_t>(start));
}

bool HeadParser::take_target(std::string_view target, std::uint32_t at) noexcept {
  const auto printable = [](char c) { return c > 0x20 && c < 0x7F; };
  if (!std::all_of(target.begin(), target.end(), printable)) return refuse(400);
  if (target == "*") {
    head_.path = {at, 1};
    return head_.method == Method::options ? true : refuse(400);
  }
  if (target.front() != '/') {
    // Absolute form: a server has to understand it; its authority must be allowed like a Host.
    if (target.size() < 8 || !equal_ignoring_case(target.substr(0, 7), "http://")) {
      return refuse(400);
    }
    const std::size_t slash = target.find('/', 7);
    if (slash == std::string_view::npos || slash == 7) return refuse(400);
    head_.authority = {at + 7, static_cast<std::uint32_t>(slash - 7)};
    target.remove_prefix(slash);
    at += static_cast<std::uint32_t>(slash);
  }
  const std::size_t mark = std::min(target.find('?'), target.size());
  head_.path = {at, static_cast<std::uint32_t>(mark)};
  if (mark < target.size()) {
    head_.query = {at + static_cast<std::uint32_t>(mark) + 1,
                   static_cast<std::uint32_t>(target.size() - mark - 1)};
  }
  return true;
}

bool HeadParser::take_field(std::string_view line, std::uint32_t at) noexcept {
  std::size_t colon = 0;
  while (colon < line.size() && is_token_char(line[colon])) ++colon;
  // Also refuses a folded line and a space before the colon: neither is a token character.
  if (colon == 0 || colon == line.size() || line[colon] != ':') return refuse(400);
  const std::string_view raw = line.substr(colon + 1);
  if (std::any_of(raw.begin(), raw.end(), is_control)) return refuse(400);
  const std::string_view value = trim(raw);
  return take_known(line.substr(0, colon), value,
                    at + static_cast<std::uint32_t>(value.data() - line.data()));
}

bool HeadParser::take_known(std::string_view name, std::string_view value,
                            std::uint32_t at) noexcept {
  const auto is = [&](std::string_view lower) { return equal_ignoring_case(name, lower); };
  switch (name.size()) {
    case 4:
      if (is("host")) return keep(Field::host, value, at);
      break;
    case 6:
      if (is("accept")) take_accept(head_, value);
      if (is("origin")) return keep(Field::origin, value, at);
      if (is("expect")) {
        if (!equal_ignoring_case(value, "100-continue")) return refuse(417);
        head_.expects_continue = true;
      }
      break;
    case 10:
      if (is("connection")) take_connection(head_, value);
      break;
    case 12:
      if (is("content-type")) return keep(Field::content_type, value, at);
      break;
    case 13:
      if (is("authorization")) return keep(Field::authorization, value, at);
      if (is("last-event-id")) return keep(Field::last_event_id, value, at);
      break;
    case 14:
      if (is("content-length")) return take_length(value);
      if (is("mcp-session-id")) return keep(Field::session, value, at);
      if (is("sec-fetch-site")) return keep(Field::fetch_site, value, at);
      break;
    case 17:
      if (is("transfer-encoding")) {
        if (head_.chunked || !equal_ignoring_case(value, "chunked")) return refuse(400);
        head_.chunked = true;
      }
      break;
    case 20:
      if (is("mcp-protocol-version")) return keep(Field::revision, value, at);
      break;
    default:
      break;
  }
  return true;
}

bool HeadParser::keep(Field field, std::string_view value, std::uint32_t at) noexcept {
  if (head_.has(field)) return refuse(400);
  head_.seen = static_cast<std::uint8_t>(head_.seen | 1u << static_cast<unsigned>(field));
  head_.fields[static_cast<std::size_t>(field)] = {at, static_cast<std::uint32_t>(value.size())};
  return true;
}

bool HeadParser::take_length(std::string_view value) noexcept {
  // Even two equal lengths: nobody needs them, and they are how smuggling starts.
  if (head_.has_length || value.empty() || value.size() > 18) return refuse(400);
  for (const char c : value) {
    if (c < '0' || c > '9') return refuse(400);
    head_.content_length = head_.content_length * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return head_.has_length = true;
}

bool HeadParser::finish() noexcept {
  if (head_.chunked && (head_.has_length || head_.minor == 0)) return refuse(400);
  if (head_.minor == 1 && !head_.has(Field::host)) return refuse(400);
  return done_ = true;
}

}  // namespace http_codec
