// Parses server-sent events (WHATWG format), which may be split into pieces of any size.
//
// If an event has only one data line, and one piece contains both this line and the end of the
// event, the event is returned as a view of the piece, without copying. All other events are
// assembled in a buffer of at most max_event_bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace connector_http {

struct SseEvent {
  std::string_view type;  // empty means "message"
  std::string_view data;  // lines joined with \n; like type, valid until the next next()
};

class SseParser {
 public:
  // Result of next().
  enum class Step : std::uint8_t { event, need_more, too_large };

  explicit SseParser(std::uint64_t max_event_bytes = 1 << 20) noexcept
      : max_event_bytes_(max_event_bytes) {}

  // Starts a new stream. As the specification requires, the last event ID and the retry time are
  // kept.
  void restart() noexcept;
  // Starts a new stream, and also clears the last event ID and the retry time. Small buffers are
  // kept.
  void reset(std::uint64_t max_event_bytes) noexcept;

  // Parses `in` from *at. Returns one of these steps:
  //   event      *out is an event; more events may follow in `in`
  //   need_more  all of `in` has been parsed, and incomplete data has been copied
  //   too_large  an event or a line exceeds the limit
  Step next(std::string_view in, std::size_t *at, SseEvent *out);

  // Returns the ID of the last complete event, for resuming the stream. Returns an empty string if
  // the server has sent no ID. An ID that is longer than 1 KiB or not a valid header value is
  // treated as empty.
  const std::string &last_event_id() const noexcept { return last_id_; }
  // Returns the retry time that the server has sent, in milliseconds.
  std::optional<std::uint32_t> retry_ms() const noexcept { return retry_ms_; }

 private:
  std::size_t line_end(std::string_view in, std::size_t at) noexcept;
  bool take_line(std::string_view line, bool stable);
  void take_id(std::string_view value);
  void take_retry(std::string_view value);
  bool add_data(std::string_view value, bool stable);
  bool finish_event(SseEvent *out);
  bool keep(std::string_view in);
  void own_data();

  std::uint64_t max_event_bytes_;
  std::string line_;       // the beginning of an incomplete line
  std::string data_;       // assembled data lines
  std::string_view view_;  // replaces data_ while the only data line is in the current piece
  std::string type_, last_id_;
  std::string id_;  // ID of the current event; valid if has_id_
  std::optional<std::uint32_t> retry_ms_;
  std::size_t lf_ = 0;  // if lf_known_, the position of the next LF at or after a line start
  bool lf_known_ = false;
  bool has_id_ = false;
  bool has_data_ = false;
  bool skip_lf_ = false;  // the last line ended with CR, and a following LF belongs to it
  bool at_start_ = true;  // a byte order mark may follow
  bool dispatched_ = false;
};

}  // namespace connector_http
