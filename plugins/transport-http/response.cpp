#include "response.hpp"

#include <algorithm>
#include <array>
#include <ctime>

#include "bulkhead/cpp/basics.hpp"
#include "http-codec/head_writer.hpp"

namespace transport_http {

namespace {

using http_codec::HeadText;
using Head = HeadText<1536>;

// Maximum number of parts in one system call. If there are more, they are joined first.
constexpr std::size_t max_parts = 60;

iovec io(std::string_view s) noexcept {
  return {const_cast<char *>(s.data()), s.size()};
}

// Returns the Date header, which RFC 9110 requires. The header is updated once per second.
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

// Returns true if the JSON contains line breaks, which can only be between tokens. This matters
// because each line of an event must start with "data:".
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

// Writes the prefix, the parts and the suffix in one system call.
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
  head << http_codec::status_line(answer.status);
  const std::size_t n = size_of(answer.parts);
  if (n > 0) head.field("Content-Type", answer.content_type);
  if (answer.status != 204) head.field("Content-Length", n);
  common_lines(head, c, answer.extra);
  write_all(c, io(head.view()), c.reply.body_less ? std::span<const bh_str>{} : answer.parts, {});
  c.finish_answer();
}

void respond_error(Connection &c, int status, int code, std::string_view message,
                   std::string_view extra) {
  HeadText<32> number;
  if (code < 0) number << "-";
  number.number(static_cast<std::uint64_t>(code < 0 ? -code : code));
  const std::array<bh_str, 5> parts{bh::str(R"({"jsonrpc":"2.0","error":{"code":)"),
                                    bh::str(number.view()), bh::str(R"(,"message":")"),
                                    bh::str(message), bh::str(R"("}})")};
  respond(c, {.status = status, .extra = extra, .parts = parts});
}

bool begin_events(Connection &c, std::string_view extra, const Event *prime) {
  if (!c.reply.chunkable) c.reply.persistent = false;  // closing the connection ends the body
  Head head;
  head << http_codec::status_line(200)
       << "Content-Type: text/event-stream\r\n"
          "Cache-Control: no-cache, no-transform\r\nX-Accel-Buffering: no\r\n";
  if (c.reply.chunkable) head << "Transfer-Encoding: chunked\r\n";
  common_lines(head, c, extra);
  if (prime != nullptr) {
    HeadText<96> text;
    (text << "id: ").number(prime->stream) << "-";
    text.number(prime->sequence) << "\nretry: 1000\ndata: \n\n";
    if (c.reply.chunkable) head.number(text.view().size(), 16) << "\r\n";
    head << text.view() << (c.reply.chunkable ? "\r\n" : "");
  }
  c.begin_stream();
  return write_all(c, io(head.view()), {}, {});
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
  HeadText<160> lines;
  if (!event.name.empty()) lines << "event: " << event.name << "\n";
  if (event.parts.empty()) {
    lines << ": no answer";  // a comment, because there is no message to send
  } else {
    if (event.has_id) {
      (lines << "id: ").number(event.stream) << "-";
      lines.number(event.sequence) << "\n";
    }
    lines << "data: ";
  }
  HeadText<192> prefix;
  std::string_view suffix = "\n\n";
  if (c.reply.chunkable) {
    prefix.number(lines.view().size() + size_of(parts) + 2, 16) << "\r\n";
    suffix = last ? "\n\n\r\n0\r\n\r\n" : "\n\n\r\n";
  }
  prefix << lines.view();
  const bool sent = write_all(c, io(prefix.view()), parts, suffix);
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
