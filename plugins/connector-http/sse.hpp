// Parses server-sent events (WHATWG format) from pieces of any size.
//
// If the only data line of an event is within one piece, the event is returned as a view of that
// piece, without a copy. Other events are assembled in a buffer, limited by max_event_bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace connector_http {

struct SseEvent {
  std::string_view type;  // "message" if empty
  std::string_view data;  // lines joined with \n; borrowed until the handler returns
};

class SseParser {
 public:
  // The result of one step.
  enum class Step : std::uint8_t { event, need_more, too_large };

  explicit SseParser(std::uint64_t max_event_bytes = 1 << 20) noexcept
      : max_event_bytes_(max_event_bytes) {}

  // Starts a new stream. The last event id and the retry time are kept, as specified.
  void restart() noexcept;
  // Like restart(), but also clears the id and the retry time. Small buffers keep their memory.
  void reset(std::uint64_t max_event_bytes) noexcept;

  // Parses `in` from *at. event: *out is set; call again for more. need_more: `in` has been
  // consumed, and data needed later was copied. too_large: an event or line exceeds the limit.
  Step next(std::string_view in, std::size_t *at, SseEvent *out);

  // Returns the id of the last complete event, for resumption. Empty if the server sent no id. At
  // most 1 KiB and valid in a header (other ids are ignored).
  const std::string &last_event_id() const noexcept { return last_id_; }
  // Returns the server's retry time, in milliseconds.
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
  std::string_view view_;  // used instead of data_ while a line of the piece is the only data
  std::string type_, last_id_;
  std::string id_;  // id of the current event, if has_id_
  std::optional<std::uint32_t> retry_ms_;
  std::size_t lf_ = 0;  // if lf_known_, the position of the piece's next LF, or a later position
  bool lf_known_ = false;
  bool has_id_ = false;
  bool has_data_ = false;
  bool skip_lf_ = false;  // the last line ended with CR; a following LF belongs to it
  bool at_start_ = true;  // a byte order mark may follow
  bool dispatched_ = false;
};

}  // namespace connector_http
