// What the process after this one must know of the client's two wires: kept by the host, which
// outlives us, a store at a time. Without such a host nothing is kept, and nothing costs anything.
//
// Thread: the reactor's.
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
  // null, or of a host without carry(): nothing is kept.
  Carried(void *ctx, const bh_host_resume *host) noexcept;

  // Opens the session; BH_E_UNSUPPORTED: it is to be opened in the ordinary way.
  bh_status open(const bh_peer &peer, bh_session *out, bh_error *error);
  bool active() const noexcept { return session_ != 0; }

  // Where the process before us stood.
  bool restored() const noexcept { return restored_; }
  bool input_was_cut() const noexcept { return (before_ & input_cut) != 0; }
  bool output_was_cut() const noexcept { return (before_ & output_cut) != 0; }
  // The descriptors' flags as they were before any process of ours has changed them.
  void flags(int *in, int *out) noexcept;

  // Each message from the client has a stream of its own; 0 where nothing is kept.
  std::uint64_t next_stream() noexcept { return active() ? ++stream_ : 0; }
  // What the process before us has read and not delivered: to be handled first, as if it had been
  // read now.
  std::string take_unread();
  // See LineSink.
  void read(std::string_view data) noexcept;
  void left(std::string_view left) noexcept;
  // A line was queued that ends so many bytes into the output. stream: of the message that it
  // answers, 0: of none.
  void queued(std::uint64_t stream, std::uint64_t end);
  void writes() noexcept { set(output_cut, true); }
  void written(std::uint64_t bytes) noexcept;
  // There will be no answer.
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
  std::string unread_;       // of before
  std::size_t kept_ = 0;     // bytes that the host keeps
  bool too_much_ = false;    // it could not keep all; until the next line
  std::vector<Line> lines_;  // not wholly written, from first_ on
  std::size_t first_ = 0;
};

}  // namespace transport_stdio
