#include "transport-stdio/carried.hpp"

#include <fcntl.h>
#include <bulkhead/cpp/basics.hpp>

#include <utility>

namespace transport_stdio {
namespace {

int with_flag(int flags, int flag, bool on) {
  return flags < 0 ? flags : on ? flags | flag : flags & ~flag;
}

}  // namespace

Carried::Carried(void *ctx, const bh_host_resume *host) noexcept
    : ctx_(ctx), host_(host != nullptr && host->size >= sizeof *host ? host : nullptr) {}

bh_status Carried::open(const bh_peer &peer, bh_session *out, bh_error *error) {
  if (host_ == nullptr) return BH_E_UNSUPPORTED;
  bh_carried before{};
  before.size = sizeof before;
  const bh_status status = host_->carry(ctx_, &peer, out, &before, error);
  if (status != BH_OK) return status;
  session_ = *out;
  restored_ = before.restored != 0;
  stream_ = before.last_stream;
  before_ = note_ = before.note;
  unread_ = bh::view(before.unread);
  too_much_ = input_was_cut();
  return BH_OK;
}

void Carried::flags(int *in, int *out) noexcept {
  if (!active()) return;
  if ((note_ & flags_known) == 0) {
    if (*in >= 0 && (*in & O_NONBLOCK) != 0) note_ |= in_nonblocking;
    if (*out >= 0 && (*out & O_NONBLOCK) != 0) note_ |= out_nonblocking;
    return set(flags_known, true);
  }
  *in = with_flag(*in, O_NONBLOCK, (note_ & in_nonblocking) != 0);
  *out = with_flag(*out, O_NONBLOCK, (note_ & out_nonblocking) != 0);
}

std::string Carried::dequeue_unread() {
  kept_ = unread_.size();
  return std::exchange(unread_, {});
}

void Carried::read(std::string_view data) noexcept {
  if (active() && !too_much_) keep(data, kept_ != 0);
}

void Carried::left(std::string_view left) noexcept {
  if (!active()) return;
  if (too_much_) return keep(left, false);
  host_->taken(ctx_, session_, kept_ - left.size());
  kept_ = left.size();
}

// If the host cannot store the bytes, they are lost when this process ends. The next process must
// then skip the rest of the line.
void Carried::keep(std::string_view bytes, bool more) noexcept {
  too_much_ = host_->keep(ctx_, session_, bh::str(bytes), more ? 1 : 0) != BH_OK;
  set(input_cut, too_much_ && !bytes.ends_with('\n'));
  kept_ = too_much_ ? 0 : (more ? kept_ : 0) + bytes.size();
}

void Carried::queued(std::uint64_t stream, std::uint64_t end) {
  if (active()) lines_.push_back({stream, end});
}

void Carried::written(std::uint64_t bytes) noexcept {
  if (!active()) return;
  for (; first_ < lines_.size() && lines_[first_].end <= bytes; ++first_) {
    settled(lines_[first_].stream);
    // The bytes written so far end with a complete line.
    if (lines_[first_].end == bytes) set(output_cut, false);
  }
  if (first_ < lines_.size()) return;
  lines_.clear();
  first_ = 0;
}

void Carried::settled(std::uint64_t stream) noexcept {
  if (active() && stream != 0) host_->settled(ctx_, session_, stream);
}

void Carried::set(std::uint64_t bit, bool on) noexcept {
  if (!active()) return;
  const std::uint64_t note = on ? note_ | bit : note_ & ~bit;
  if (note == note_ && bit != flags_known) return;
  note_ = note;
  host_->note(ctx_, session_, note_);
}

}  // namespace transport_stdio
