#include "common/http_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

HttpHead bad(int status, std::string why) {
  HttpHead head;
  head.state = HttpHead::State::bad;
  head.status = status;
  head.why = std::move(why);
  return head;
}

bool same_name(std::string_view a, std::string_view lower) {
  return std::equal(a.begin(), a.end(), lower.begin(), lower.end(), [](char x, char y) {
    return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y;
  });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::size_t> decimal(std::string_view text) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// False after *head has become a refusal.
bool take_header(std::string_view line, std::size_t max_body, bool *has_length, HttpHead *head) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || colon == 0) {
    *head = bad(400, "a header line has no name");
    return false;
  }
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (same_name(name, "content-length")) {
    const auto length = decimal(value);
    if (!length || *has_length) {
      *head = bad(400, "Content-Length is not one number");
      return false;
    }
    if (*length > max_body) {
      *head = bad(413, "the body is larger than " + std::to_string(max_body) + " bytes");
      return false;
    }
    *has_length = true;
    head->body_bytes = *length;
  } else if (same_name(name, "transfer-encoding")) {
    *head = bad(501, "send the body with a Content-Length");
    return false;
  } else if (same_name(name, "origin") ||
             (same_name(name, "sec-fetch-site") && !same_name(value, "none"))) {
    *head = bad(403, "this socket is not for web pages");
    return false;
  } else if (same_name(name, "host")) {
    head->host = value;
  } else if (same_name(name, "expect")) {
    head->wants_continue = same_name(value, "100-continue");
  }
  return true;
}

std::string_view reason_of(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

HttpHead parse_head(std::string_view bytes, std::size_t max_head, std::size_t max_body) {
  const std::size_t end = bytes.substr(0, max_head).find("\r\n\r\n");
  if (end == std::string_view::npos) {
    return bytes.size() < max_head ? HttpHead{} : bad(431, "the head of the request is too large");
  }
  HttpHead head;
  head.head_bytes = end + 4;
  std::string_view lines = bytes.substr(0, end + 2);
  const std::string_view first = lines.substr(0, lines.find("\r\n"));
  lines.remove_prefix(first.size() + 2);
  const std::size_t one = first.find(' ');
  const std::size_t two = one == std::string_view::npos ? one : first.find(' ', one + 1);
  if (two == std::string_view::npos || !first.substr(two + 1).starts_with("HTTP/1.") || one == 0 ||
      first[one + 1] != '/') {
    return bad(400, "this is not an HTTP/1.1 request");
  }
  head.method = first.substr(0, one);
  head.target = first.substr(one + 1, two - one - 1);
  bool has_length = false;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find("\r\n"));
    lines.remove_prefix(line.size() + 2);
    if (!take_header(line, max_body, &has_length, &head)) return head;
  }
  head.state = HttpHead::State::whole;
  return head;
}

std::string http_answer(int status, std::string_view body, std::string_view type) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " ";
  out.append(reason_of(status));
  out.append("\r\nContent-Type: ").append(type);
  out += "\r\nContent-Length: " + std::to_string(body.size());
  out += "\r\nConnection: close\r\n\r\n";
  return out.append(body);
}

std::string error_body(std::string_view why) {
  std::string out = "{\"error\":";
  mcp::append_quoted(&out, why);
  return out + "}";
}

Result<HttpReply> parse_reply(std::string_view bytes) {
  const std::size_t end = bytes.find("\r\n\r\n");
  const std::size_t space = bytes.find(' ');
  if (!bytes.starts_with("HTTP/1.") || end == std::string_view::npos || space > end) {
    return fail(BH_E_PROTOCOL, "answers something else");
  }
  const auto status = decimal(bytes.substr(space + 1, 3));
  if (!status) return fail(BH_E_PROTOCOL, "answers something else");
  return HttpReply{static_cast<int>(*status), std::string(bytes.substr(end + 4))};
}

}  // namespace bulkhead::program
