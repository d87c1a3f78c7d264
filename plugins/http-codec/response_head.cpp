#include "http-codec/response_head.hpp"

#include <algorithm>
#include <cstring>

#include "http-codec/text.hpp"

namespace http_codec {
namespace {

bool parse_number(std::string_view s, std::uint64_t *out) noexcept {
  if (s.empty() || s.size() > 15) return false;
  std::uint64_t value = 0;
  for (char c : s) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
  }
  *out = value;
  return true;
}

struct Fields {
  bool http_1_0 = false, close = false, keep = false, chunked = false, has_length = false;
};

const char *take_length(std::string_view value, ResponseHead *head, Fields *fields) noexcept {
  std::uint64_t n = 0;
  if (!parse_number(value, &n)) return "a malformed Content-Length";
  if (fields->has_length && n != head->content_length) return "two different Content-Length fields";
  fields->has_length = true;
  head->content_length = n;
  return nullptr;
}

void take_connection(std::string_view value, Fields *fields) noexcept {
  for_each_element(value, [&](std::string_view option) {
    if (equal_ignoring_case(option, "close")) fields->close = true;
    if (equal_ignoring_case(option, "keep-alive")) fields->keep = true;
  });
}

void take_keep_alive(std::string_view value, ResponseHead *head) noexcept {
  for_each_element(value, [&](std::string_view option) {
    std::uint64_t n = 0;
    if (option.size() > 8 && equal_ignoring_case(option.substr(0, 8), "timeout=") &&
        parse_number(option.substr(8), &n)) {
      head->keep_alive_s = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(n, 1, 86'400));
    }
  });
}

// Stores the fields that matter; a length switch keeps the others to one comparison.
const char *take_field(std::string_view name, std::string_view value, ResponseHead *head,
                       Fields *fields) noexcept {
  switch (name.size()) {
    case 8:
      if (equal_ignoring_case(name, "location")) head->location = value;
      break;
    case 10:
      if (equal_ignoring_case(name, "connection")) take_connection(value, fields);
      if (equal_ignoring_case(name, "keep-alive")) take_keep_alive(value, head);
      break;
    case 11:
      if (equal_ignoring_case(name, "retry-after")) head->retry_after = value;
      break;
    case 12:
      if (equal_ignoring_case(name, "content-type")) head->content_type = value;
      break;
    case 14:
      if (equal_ignoring_case(name, "content-length")) return take_length(value, head, fields);
      if (equal_ignoring_case(name, "mcp-session-id")) head->session_id = value;
      break;
    case 16:
      if (equal_ignoring_case(name, "www-authenticate") && head->challenge.empty()) {
        head->challenge = value;
      }
      if (equal_ignoring_case(name, "content-encoding")) head->content_encoding = value;
      break;
    case 17:
      if (equal_ignoring_case(name, "transfer-encoding")) {
        if (fields->chunked || !equal_ignoring_case(value, "chunked")) {
          return "a transfer coding other than chunked";
        }
        fields->chunked = true;
      }
      break;
    default:
      break;
  }
  return nullptr;
}

// "HTTP/1.1 200 OK"
const char *take_status_line(std::string_view line, ResponseHead *head, Fields *fields) noexcept {
  if (line.size() < 12 || std::memcmp(line.data(), "HTTP/1.", 7) != 0 ||
      (line[7] != '1' && line[7] != '0') || line[8] != ' ' ||
      (line.size() > 12 && line[12] != ' ')) {
    return "no HTTP/1.1 status line";
  }
  std::uint64_t status = 0;
  if (!parse_number(line.substr(9, 3), &status) || status < 100) return "a malformed status code";
  fields->http_1_0 = line[7] == '0';
  head->status = static_cast<std::uint16_t>(status);
  return nullptr;
}

const char *take_line(std::string_view line, ResponseHead *head, Fields *fields) noexcept {
  std::size_t colon = 0;
  while (colon < line.size() && is_token_char(line[colon])) ++colon;
  if (colon == 0 || colon == line.size() || line[colon] != ':') return "a malformed header line";
  const std::string_view value = line.substr(colon + 1);
  return take_field(line.substr(0, colon), trim(value), head, fields);
}

const char *settle(ResponseHead *head, const Fields &fields) noexcept {
  if (fields.chunked && fields.has_length) return "two framings for one body";
  if (fields.chunked && fields.http_1_0) return "a transfer coding in HTTP/1.0";
  head->keep_alive = !fields.close && (!fields.http_1_0 || fields.keep);
  if (head->status < 200 || head->status == 204 || head->status == 304) {
    head->framing = Framing::none;
  } else if (fields.chunked) {
    head->framing = Framing::chunked;
  } else if (fields.has_length) {
    head->framing = head->content_length == 0 ? Framing::none : Framing::length;
  } else {
    head->framing = Framing::until_close;
    head->keep_alive = false;
  }
  return nullptr;
}

}  // namespace

ParseResult parse_head(std::string_view in, ResponseHead *head, std::size_t *used,
                       const char **why) noexcept {
  *head = ResponseHead{};
  Fields fields;
  std::size_t at = 0;
  bool first = true;
  for (;;) {
    const char *from = in.data() + at, *const end = in.data() + in.size();
    const char *cr = find_control(from, end);
    if (cr == end) return ParseResult::incomplete;
    if (*cr != '\r') return *why = "a control byte in the head", ParseResult::invalid;
    if (cr + 1 == end) return ParseResult::incomplete;
    if (cr[1] != '\n') return *why = "a carriage return inside a line", ParseResult::invalid;
    const std::string_view line(from, static_cast<std::size_t>(cr - from));
    at = static_cast<std::size_t>(cr - in.data()) + 2;
    if (line.empty() && !first) break;
    const char *bad =
        first ? take_status_line(line, head, &fields) : take_line(line, head, &fields);
    if (bad != nullptr) return *why = bad, ParseResult::invalid;
    first = false;
  }
  *used = at;
  if (const char *bad = settle(head, fields)) return *why = bad, ParseResult::invalid;
  return ParseResult::complete;
}

}  // namespace http_codec
