// State of the client's two streams, which the next process needs to resume the session. It is
// stored by the host, which outlives this process. If the host does not support this, nothing is
// stored, and there is no overhead.
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

  // Opens the session. Returns BH_E_UNSUPPORTED if the session must be opened without resumption.
  bh_status open(const bh_peer &peer, bh_session *out, bh_error *error);
  bool active() const noexcept { return session_ != 0; }

  // The state left by the previous process.
  bool restored() const noexcept { return restored_; }
  bool input_was_cut() const noexcept { return (before_ & input_cut) != 0; }
  bool output_was_cut() const noexcept { return (before_ & output_cut) != 0; }
  // Sets the descriptor flags from before the first process changed them.
  void flags(int *in, int *out) noexcept;

  // Returns a new stream number for a message from the client, or 0 if nothing is stored.
  std::uint64_t next_stream() noexcept { return active() ? ++stream_ : 0; }
  // Returns input that the previous process read but did not deliver. It must be processed first.
  std::string dequeue_unread();
  // See LineSink.
  void read(std::string_view data) noexcept;
  void left(std::string_view left) noexcept;
  // Called when a line was queued. `end` is the offset of its end in the output. `stream` is the
  // stream of the answered message, or 0 if the line is not an answer.
  void queued(std::uint64_t stream, std::uint64_t end);
  void writes() noexcept { set(output_cut, true); }
  void written(std::uint64_t bytes) noexcept;
  // Called if the message will not be answered.
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
  std::string unread_;       // left by the previous process
  std::size_t kept_ = 0;     // bytes stored by the host
  bool too_much_ = false;    // the current line was too long for the host to store
  std::vector<Line> lines_;  // incompletely written lines, from index first_
  std::size_t first_ = 0;
};

}  // namespace transport_stdio
