#include "http-codec/request_head.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"

namespace http_codec {

namespace {

constexpr std::array<std::string_view, 5> method_names{"GET", "HEAD", "POST", "DELETE", "OPTIONS"};

Method method_of(std::string_view name) noexcept {
  if (name == "POST") return Method::post;
  const auto found = std::find(method_names.begin(), method_names.end(), name);
  return static_cast<Method>(found - method_names.begin());
}

void read_accept(RequestHead &head, std::string_view value) noexcept {
  head.has_accept = true;
  for_each_element(value, [&](std::string_view type) {
    const bool any = type == "*/*";
    if (any || equals_lower(type, "application/json") || type == "application/*") {
      head.accepts_json = true;
    }
    if (any || equals_lower(type, "text/event-stream") || type == "text/*") {
      head.accepts_events = true;
    }
  });
}

bool is_version(std::string_view text) noexcept {
  const auto digit = [&](std::size_t i) { return text[i] >= '0' && text[i] <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && digit(5) && text[6] == '.' && digit(7);
}

}  // namespace

std::string_view name_of(Method method) noexcept {
  return method == Method::other ? "" : method_names[static_cast<std::size_t>(method)];
}

HeadParser::Result HeadParser::advance(std::string_view data) noexcept {
  if (status_ != 0) return Result::error;
  data = data.substr(0, limit_);
  while (!done_) {
    const std::uint32_t at = lines_.start();
    // Immediately rejects a byte that cannot begin a request, without waiting for the end of the
    // line.
    const bool invalid =
        !request_line_ && at < data.size() && data[at] != '\r' && !is_token_char(data[at]);
    std::string_view line;
    switch (invalid ? HeadLines::Step::invalid : lines_.next(data, line)) {
      case HeadLines::Step::invalid:
        refuse(400, "an invalid character in the head");
        return Result::error;
      case HeadLines::Step::more:
        if (data.size() < limit_) return Result::more;
        refuse(431, "the head is too large");
        return Result::error;
      case HeadLines::Step::line:
        if (!read_line(line, at)) return Result::error;
    }
  }
  return Result::done;
}

bool HeadParser::read_line(std::string_view line, std::uint32_t at) noexcept {
  if (!request_line_) {
    if (!line.empty()) return request_line_ = read_request_line(line, at);
    if (skipped_line_) return refuse(400, "no request line");
    return skipped_line_ = true;
  }
  if (line.empty()) return finish();
  std::string_view name, value;
  if (!split_field(line, name, value)) return refuse(400, "a malformed header line");
  return read_field(name, value, at + static_cast<std::uint32_t>(value.data() - line.data()));
}

bool HeadParser::read_request_line(std::string_view line, std::uint32_t at) noexcept {
  const std::size_t method = token_size(line);
  if (method == 0 || method == line.size() || line[method] != ' ') {
    return refuse(400, "no HTTP/1.1 request line");
  }
  head_.method = method_of(line.substr(0, method));
  const std::size_t start = method + 1;
  const std::size_t end = line.find(' ', start);
  if (end == std::string_view::npos || end == start) return refuse(400, "no HTTP/1.1 request line");
  const std::string_view version = line.substr(end + 1);
  if (version != "HTTP/1.1") {
    if (version != "HTTP/1.0") {
      return refuse(is_version(version) ? 505 : 400, "no HTTP/1.1 request line");
    }
    head_.minor = 0;
  }
  return read_target(line.substr(start, end - start), at + static_cast<std::uint32_t>(start));
}

bool HeadParser::read_target(std::string_view target, std::uint32_t at) noexcept {
  const auto printable = [](char c) { return c > 0x20 && c < 0x7F; };
  const char *const malformed = "a malformed target";
  if (!std::all_of(target.begin(), target.end(), printable)) return refuse(400, malformed);
  if (target == "*") {
    head_.path = {at, 1};
    return head_.method == Method::options || refuse(400, malformed);
  }
  if (target.front() != '/') {
    // Servers must accept request targets in the absolute form. Their authority is checked like a
    // Host header.
    const std::size_t slash = target.find('/', 7);
    if (slash == std::string_view::npos || slash == 7 ||
        !bh::starts_with_ignoring_case(target, "http://")) {
      return refuse(400, malformed);
    }
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

bool HeadParser::read_field(std::string_view name, std::string_view value,
                            std::uint32_t at) noexcept {
  switch (name.size()) {
    case 4:
      if (equals_lower(name, "host")) return keep(Field::host, value, at);
      break;
    case 6:
      if (equals_lower(name, "accept")) read_accept(head_, value);
      if (equals_lower(name, "origin")) return keep(Field::origin, value, at);
      if (equals_lower(name, "expect")) {
        if (!equals_lower(value, "100-continue")) return refuse(417, "an unknown expectation");
        head_.expects_continue = true;
      }
      break;
    case 10:
      if (equals_lower(name, "connection")) head_.read_connection(value);
      break;
    case 12:
      if (equals_lower(name, "content-type")) return keep(Field::content_type, value, at);
      break;
    case 13:
      if (equals_lower(name, "authorization")) return keep(Field::authorization, value, at);
      if (equals_lower(name, "last-event-id")) return keep(Field::last_event_id, value, at);
      break;
    case 14:
      if (equals_lower(name, "content-length")) {
        // Two Content-Length fields are rejected even if they are equal, because they serve no
        // purpose and are common in request smuggling.
        return check(head_.has_length ? "two Content-Length fields" : head_.read_length(value));
      }
      if (equals_lower(name, "mcp-session-id")) return keep(Field::session, value, at);
      if (equals_lower(name, "sec-fetch-site")) return keep(Field::fetch_site, value, at);
      break;
    case 17:
      if (equals_lower(name, "transfer-encoding")) return check(head_.read_coding(value));
      break;
    case 20:
      if (equals_lower(name, "mcp-protocol-version")) return keep(Field::revision, value, at);
      break;
    default:
      break;
  }
  return true;
}

bool HeadParser::keep(Field field, std::string_view value, std::uint32_t at) noexcept {
  if (head_.has(field)) return refuse(400, "a header field that is allowed only once is repeated");
  head_.seen = static_cast<std::uint8_t>(head_.seen | 1u << static_cast<unsigned>(field));
  head_.fields[static_cast<std::size_t>(field)] = {at, static_cast<std::uint32_t>(value.size())};
  return true;
}

bool HeadParser::finish() noexcept {
  head_.bytes = lines_.start();
  if (!check(head_.check_framing(head_.minor == 0))) return false;
  if (needs_host_ && head_.minor == 1 && !head_.has(Field::host)) return refuse(400, "no Host");
  return done_ = true;
}

}  // namespace http_codec
