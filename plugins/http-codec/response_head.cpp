#include "http-codec/response_head.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"
#include "http-codec/head_lines.hpp"

namespace http_codec {
namespace {

struct Fields : MessageFields {
  bool http_1_0 = false;
};

void read_keep_alive(std::string_view value, ResponseHead *head) noexcept {
  for_each_element(value, [&](std::string_view option) {
    std::uint64_t n = 0;
    if (option.size() > 8 && bh::starts_with_ignoring_case(option, "timeout=") &&
        parse_decimal(option.substr(8), &n)) {
      head->keep_alive_s = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(n, 1, 86'400));
    }
  });
}

// Stores the fields that are needed. Most other fields can be skipped quickly by comparing only the
// length of the name.
const char *read_field(std::string_view name, std::string_view value, ResponseHead *head,
                       Fields *fields) noexcept {
  switch (name.size()) {
    case 8:
      if (equals_lower(name, "location")) head->location = value;
      break;
    case 10:
      if (equals_lower(name, "connection")) fields->read_connection(value);
      if (equals_lower(name, "keep-alive")) read_keep_alive(value, head);
      break;
    case 11:
      if (equals_lower(name, "retry-after")) head->retry_after = value;
      break;
    case 12:
      if (equals_lower(name, "content-type")) head->content_type = value;
      break;
    case 14:
      if (equals_lower(name, "content-length")) return fields->read_length(value);
      if (equals_lower(name, "mcp-session-id")) head->session_id = value;
      break;
    case 16:
      if (equals_lower(name, "www-authenticate")) head->add_challenge(value);
      if (equals_lower(name, "content-encoding")) head->content_encoding = value;
      break;
    case 17:
      if (equals_lower(name, "transfer-encoding")) return fields->read_coding(value);
      break;
    default:
      break;
  }
  return nullptr;
}

// Parses a status line such as "HTTP/1.1 200 OK".
const char *read_status_line(std::string_view line, ResponseHead *head, Fields *fields) noexcept {
  if (line.size() < 12 || !line.starts_with("HTTP/1.") || (line[7] != '1' && line[7] != '0') ||
      line[8] != ' ' || (line.size() > 12 && line[12] != ' ')) {
    return "no HTTP/1.1 status line";
  }
  std::uint64_t status = 0;
  if (!parse_decimal(line.substr(9, 3), &status) || status < 100) return "a malformed status code";
  fields->http_1_0 = line[7] == '0';
  head->status = static_cast<std::uint16_t>(status);
  return nullptr;
}

const char *settle(ResponseHead *head, const Fields &fields) noexcept {
  if (const char *bad = fields.check_framing(fields.http_1_0)) return bad;
  head->content_length = fields.content_length;
  head->keep_alive = fields.persistent(fields.http_1_0);
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
  HeadLines lines;
  std::string_view line;
  for (bool first = true;; first = false) {
    switch (lines.next(in, line)) {
      case HeadLines::Step::more:
        return ParseResult::incomplete;
      case HeadLines::Step::invalid:
        *why = "a control character in the head";
        return ParseResult::invalid;
      case HeadLines::Step::line:
        break;
    }
    if (first) {
      *why = read_status_line(line, head, &fields);
    } else if (line.empty()) {
      *used = lines.start();
      *why = settle(head, fields);
      return *why == nullptr ? ParseResult::complete : ParseResult::invalid;
    } else {
      std::string_view name, value;
      *why = split_field(line, name, value) ? read_field(name, value, head, &fields)
                                            : "a malformed header line";
    }
    if (*why != nullptr) return ParseResult::invalid;
  }
}

}  // namespace http_codec
