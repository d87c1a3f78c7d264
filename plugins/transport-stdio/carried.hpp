// Stores the state of the client's streams that the next process needs to resume the session. The
// state is stored in the host, which outlives this process. If the host does not support this,
// nothing is stored and there is no overhead.
//
// Runs on the reactor thread.
#pragma once

#include <bulkhead/abi/ext/draft/resume.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_stdio {

class Carried {
 public:
  // If `host` is null or lacks carry(), nothing is stored.
  Carried(void *ctx, const bh_host_resume *host) noexcept;

  // Opens the session. A result of BH_E_UNSUPPORTED means that the session must be opened without
  // resumption.
  bh_status open(const bh_peer &peer, bh_session *out, bh_error *error);
  bool active() const noexcept { return session_ != 0; }

  // The state that the previous process stored.
  bool restored() const noexcept { return restored_; }
  bool input_was_cut() const noexcept { return (before_ & input_cut) != 0; }
  bool output_was_cut() const noexcept { return (before_ & output_cut) != 0; }
  // In the first process, stores the original descriptor flags. In later processes, sets *in and
  // *out to the stored flags.
  void flags(int *in, int *out) noexcept;

  // Returns a new stream number for a message from the client, or 0 if nothing is stored.
  std::uint64_t next_stream() noexcept { return active() ? ++stream_ : 0; }
  // Returns input that the previous process read but did not deliver. It must be processed first.
  std::string dequeue_unread();
  // Must be called from LineSink::on_read and LineSink::on_left.
  void read(std::string_view data) noexcept;
  void left(std::string_view left) noexcept;
  // Must be called when a line is queued. `end` is the stream offset after the line. If the line is
  // a response, `stream` is the stream of the request; otherwise, it is 0.
  void queued(std::uint64_t stream, std::uint64_t end);
  // writes() must be called before output is written, and written() afterwards. `bytes` is the
  // number of bytes written to the stream so far.
  void writes() noexcept { set(output_cut, true); }
  void written(std::uint64_t bytes) noexcept;
  // Must be called if there will be no response on this stream.
  void settled(std::uint64_t stream) noexcept;

 private:
  enum : std::uint64_t {
    input_cut = 1,
    output_cut = 2,
    flags_known = 4,
    in_nonblocking = 8,
    out_nonblocking = 16
  };
  struct Line {
    std::uint64_t stream, end;
  };
  void set(std::uint64_t bit, bool on) noexcept;
  void keep(std::string_view bytes, bool more) noexcept;

  void *const ctx_;
  const bh_host_resume *const host_;
  bh_session session_ = 0;
  bool restored_ = false;
  std::uint64_t before_ = 0, note_ = 0;
  std::uint64_t stream_ = 0;
  std::string unread_;       // input left by the previous process
  std::size_t kept_ = 0;     // bytes stored by the host
  bool too_much_ = false;    // the host could not store the current line
  std::vector<Line> lines_;  // lines that are not completely written, from index first_
  std::size_t first_ = 0;
};

}  // namespace transport_stdio
