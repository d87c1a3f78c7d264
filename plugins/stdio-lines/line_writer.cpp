#include "stdio-lines/line_writer.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace stdio_lines {
namespace {

constexpr std::size_t max_direct_parts = 32;
constexpr std::size_t kept_capacity = 64u << 10;

void to_spaces(char *p, std::size_t n, char what) noexcept {
  char *const end = p + n;
  while (p < end) {
    p = static_cast<char *>(std::memchr(p, what, static_cast<std::size_t>(end - p)));
    if (p == nullptr) return;
    *p++ = ' ';
  }
}

bool is_one_line(std::span<const bh_str> parts) noexcept {
  for (const bh_str &part : parts) {
    if (part.n == 0) continue;
    if (std::memchr(part.p, '\n', part.n) != nullptr) return false;
    if (std::memchr(part.p, '\r', part.n) != nullptr) return false;
  }
  return true;
}

}  // namespace

void block_pipe_signal() noexcept {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

std::size_t total_size(std::span<const bh_str> parts) noexcept {
  std::size_t total = 0;
  for (const bh_str &part : parts) total += part.n;
  return total;
}

bool LineWriter::add(std::span<const bh_str> parts) noexcept {
  const std::size_t total = total_size(parts);
  if (!fits(total) || !queue_.reserve(total + 1)) return false;
  char *const start = queue_.tail();
  for (const bh_str &part : parts) queue_.append({part.p, part.n});
  to_spaces(start, total, '\n');
  to_spaces(start, total, '\r');
  return queue_.append("\n");
}

bool LineWriter::add_raw(std::string_view head, std::span<const bh_str> parts) noexcept {
  const std::size_t total = head.size() + total_size(parts);
  if (!fits(total) || !queue_.reserve(total)) return false;
  queue_.append(head);
  for (const bh_str &part : parts) queue_.append({part.p, part.n});
  return true;
}

Flush LineWriter::flush(int fd) noexcept {
  while (waiting() > 0) {
    const ssize_t n = ::write(fd, queue_.data() + head_, waiting());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      // Moves the unwritten bytes to the front only if more than half of the queue has been
      // written. This amortizes the cost of moving.
      if (head_ > queue_.size() / 2) {
        queue_.drop_front(head_);
        head_ = 0;
      }
      return Flush::blocked;
    }
    if (n < 0) return Flush::broken;
    head_ += static_cast<std::size_t>(n);
    written_ += static_cast<std::size_t>(n);
  }
  drop();
  return Flush::done;
}

Flush LineWriter::add_and_flush(int fd, std::span<const bh_str> parts, bool *taken) noexcept {
  const std::size_t total = total_size(parts);
  *taken = fits(total);
  if (!*taken) return waiting() == 0 ? Flush::done : Flush::blocked;
  const Flush before = flush(fd);
  if (before == Flush::done && parts.size() <= max_direct_parts && is_one_line(parts)) {
    return write_direct(fd, parts, total);
  }
  *taken = add(parts);
  return before == Flush::done ? flush(fd) : before;
}

// Requires an empty queue.
Flush LineWriter::write_direct(int fd, std::span<const bh_str> parts, std::size_t total) noexcept {
  iovec vectors[max_direct_parts + 1];
  std::size_t count = 0;
  for (const bh_str &part : parts) {
    vectors[count++] = {const_cast<char *>(part.p), static_cast<std::size_t>(part.n)};
  }
  char newline = '\n';
  vectors[count++] = {&newline, 1};
  ssize_t n = 0;
  do {
    n = ::writev(fd, vectors, static_cast<int>(count));
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno != EAGAIN) return Flush::broken;
  std::size_t written = n < 0 ? 0 : static_cast<std::size_t>(n);
  written_ += written;
  if (written == total + 1) return Flush::done;
  if (!queue_.reserve(total + 1 - written)) {
    errno = ENOMEM;  // part of a line was written, so the stream is unusable
    return Flush::broken;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t skip = written < vectors[i].iov_len ? written : vectors[i].iov_len;
    written -= skip;
    queue_.append({static_cast<char *>(vectors[i].iov_base) + skip, vectors[i].iov_len - skip});
  }
  return Flush::blocked;
}

void LineWriter::drop() noexcept {
  head_ = 0;
  queue_.clear();
  if (queue_.capacity() > kept_capacity) queue_.release();
}

}  // namespace stdio_lines
