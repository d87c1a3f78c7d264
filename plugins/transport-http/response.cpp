#include "response.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <ctime>

#include "bulkhead/cpp/basics.hpp"

namespace transport_http {

namespace {

// Text of bounded length, built on the stack. What would not fit is left out as a whole: the parts
// that come from outside (an Origin) are bounded before.
template <std::size_t N>
class Text {
 public:
  Text &operator<<(std::string_view s) noexcept {
    if (!s.empty() && s.size() <= N - size_) {
      std::memcpy(bytes_.data() + size_, s.data(), s.size());
      size_ += s.size();
    }
    return *this;
  }
  Text &number(std::uint64_t value, int base = 10) noexcept {
    std::array<char, 24> digits;
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, base).ptr;
    return *this << std::string_view(digits.data(), end);
  }
  std::string_view view() const noexcept { return {bytes_.data(), size_}; }
  iovec io() noexcept { return {bytes_.data(), size_}; }

 private:
  std::array<char, N> bytes_;
  std::size_t size_ = 0;
};
using Head = Text<1536>;

// Bound of what one system call takes; more parts than that are joined first.
constexpr std::size_t max_parts = 60;

iovec io(std::string_view s) noexcept {
  return {const_cast<char *>(s.data()), s.size()};
}

std::string_view status_line(int status) noexcept {
  switch (status) {
    case 200:
      return "HTTP/1.1 200 OK\r\n";
    case 202:
      return "HTTP/1.1 202 Accepted\r\n";
    case 204:
      return "HTTP/1.1 204 No Content\r\n";
    case 400:
      return "HTTP/1.1 400 Bad Request\r\n";
    case 401:
      return "HTTP/1.1 401 Unauthorized\r\n";
    case 403:
      return "HTTP/1.1 403 Forbidden\r\n";
    case 404:
      return "HTTP/1.1 404 Not Found\r\n";
    case 405:
      return "HTTP/1.1 405 Method Not Allowed\r\n";
    case 406:
      return "HTTP/1.1 406 Not Acceptable\r\n";
    case 408:
      return "HTTP/1.1 408 Request Timeout\r\n";
    case 409:
      return "HTTP/1.1 409 Conflict\r\n";
    case 413:
      return "HTTP/1.1 413 Content Too Large\r\n";
    case 415:
      return "HTTP/1.1 415 Unsupported Media Type\r\n";
    case 417:
      return "HTTP/1.1 417 Expectation Failed\r\n";
    case 429:
      return "HTTP/1.1 429 Too Many Requests\r\n";
    case 431:
      return "HTTP/1.1 431 Request Header Fields Too Large\r\n";
    case 502:
      return "HTTP/1.1 502 Bad Gateway\r\n";
    case 503:
      return "HTTP/1.1 503 Service Unavailable\r\n";
    case 504:
      return "HTTP/1.1 504 Gateway Timeout\r\n";
    case 505:
      return "HTTP/1.1 505 HTTP Version Not Supported\r\n";
    default:  // an unknown code means its class
      return status >= 400 && status < 500 ? status_line(400)
                                           : "HTTP/1.1 500 Internal Server Error\r\n";
  }
}

// RFC 9110 asks every server with a clock for it; made once a second.
std::string_view date_line() noexcept {
  static thread_local std::time_t made_for = -1;
  static thread_local std::array<char, 48> line;
  static thread_local std::size_t size = 0;
  const std::time_t now = std::time(nullptr);
  if (now != made_for) {
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    size = std::strftime(line.data(), line.size(), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &utc);
    made_for = now;
  }
  return {line.data(), size};
}

void common_lines(Head &head, const Connection &c, std::string_view extra) noexcept {
  head << date_line();
  if (!c.reply.origin.empty()) {
    head << "Access-Control-Allow-Origin: " << c.reply.origin
         << "\r\nAccess-Control-Expose-Headers: Mcp-Session-Id\r\nVary: Origin\r\n";
  }
  if (!c.reply.persistent) {
    head << "Connection: close\r\n";
  } else if (!c.reply.chunkable) {
    head << "Connection: keep-alive\r\n";
  }
  head << extra << "\r\n";
}

std::size_t size_of(std::span<const bh_str> parts) noexcept {
  std::size_t n = 0;
  for (const bh_str &part : parts) n += part.n;
  return n;
}

// JSON may hold line breaks between its tokens; in an event each line needs its own "data:".
bool has_line_break(std::span<const bh_str> parts) noexcept {
  return std::any_of(parts.begin(), parts.end(), [](const bh_str &part) {
    const std::string_view text = bh::view(part);
    return text.find('\n') != text.npos || text.find('\r') != text.npos;
  });
}

std::string joined(std::span<const bh_str> parts, bool as_event_data) {
  std::string out;
  out.reserve(size_of(parts) + 64);
  char before = 0;
  for (const bh_str &part : parts) {
    const std::string_view text = bh::view(part);
    if (!as_event_data) {
      out += text;
      continue;
    }
    for (const char c : text) {
      if (c == '\r' || (c == '\n' && before != '\r')) {
        out += "\ndata: ";
      } else if (c != '\n') {
        out += c;
      }
      before = c;
    }
  }
  return out;
}

// prefix, parts, suffix in one call.
bool write_all(Connection &c, iovec prefix, std::span<const bh_str> parts,
               std::string_view suffix) {
  std::array<iovec, max_parts + 2> v;
  std::size_t n = 0;
  v[n++] = prefix;
  std::string whole;
  if (parts.size() > max_parts) {
    whole = joined(parts, false);
    v[n++] = io(whole);
  } else {
    for (const bh_str &part : parts) {
      if (part.n > 0) v[n++] = io(bh::view(part));
    }
  }
  if (!suffix.empty()) v[n++] = io(suffix);
  return c.write(v.data(), n);
}

}  // namespace

void respond(Connection &c, const Answer &answer) {
  Head head;
  head << status_line(answer.status);
  const std::size_t n = size_of(answer.parts);
  if (n > 0) head << "Content-Type: " << answer.content_type << "\r\n";
  if (answer.status != 204) (head << "Content-Length: ").number(n) << "\r\n";
  common_lines(head, c, answer.extra);
  write_all(c, head.io(), c.reply.body_less ? std::span<const bh_str>{} : answer.parts, {});
  c.finish_answer();
}

void respond_error(Connection &c, int status, int code, std::string_view message,
                   std::string_view extra) {
  Text<32> number;
  if (code < 0) number << "-";
  number.number(static_cast<std::uint64_t>(code < 0 ? -code : code));
  const std::array<bh_str, 5> parts{bh::str(R"({"jsonrpc":"2.0","error":{"code":)"),
                                    bh::str(number.view()), bh::str(R"(,"message":")"),
                                    bh::str(message), bh::str(R"("}})")};
  respond(c, {.status = status, .extra = extra, .parts = parts});
}

bool begin_events(Connection &c, std::string_view extra, const Event *prime) {
  if (!c.reply.chunkable) c.reply.persistent = false;  // its end is the connection's end
  Head head;
  head << "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
          "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n";
  if (c.reply.chunkable) head << "Transfer-Encoding: chunked\r\n";
  common_lines(head, c, extra);
  if (prime != nullptr) {
    Text<96> text;
    (text << "id: ").number(prime->stream) << "-";
    text.number(prime->sequence) << "\nretry: 1000\ndata: \n\n";
    if (c.reply.chunkable) head.number(text.view().size(), 16) << "\r\n";
    head << text.view() << (c.reply.chunkable ? "\r\n" : "");
  }
  c.begin_stream();
  return write_all(c, head.io(), {}, {});
}

bool send_event(Connection &c, const Event &event, bool last) {
  std::span<const bh_str> parts = event.parts;
  std::string whole;
  bh_str one;
  if (has_line_break(parts)) {
    whole = joined(parts, true);
    one = bh::str(whole);
    parts = {&one, 1};
  }
  Text<160> lines;
  if (!event.name.empty()) lines << "event: " << event.name << "\n";
  if (event.parts.empty()) {
    lines << ": no answer";  // a comment: there is no message for the client to read
  } else {
    if (event.has_id) {
      (lines << "id: ").number(event.stream) << "-";
      lines.number(event.sequence) << "\n";
    }
    lines << "data: ";
  }
  Text<192> prefix;
  std::string_view suffix = "\n\n";
  if (c.reply.chunkable) {
    prefix.number(lines.view().size() + size_of(parts) + 2, 16) << "\r\n";
    suffix = last ? "\n\n\r\n0\r\n\r\n" : "\n\n\r\n";
  }
  prefix << lines.view();
  const bool sent = write_all(c, prefix.io(), parts, suffix);
  if (last) c.finish_answer();
  return sent;
}

bool send_comment(Connection &c) {
  iovec part = io(c.reply.chunkable ? "3\r\n:\n\n\r\n" : ":\n\n");
  return c.write(&part, 1);
}

void end_events(Connection &c) {
  if (c.reply.chunkable) {
    iovec part = io("0\r\n\r\n");
    c.write(&part, 1);
  }
  c.finish_answer();
}

}  // namespace transport_http
