#include "stdio-lines/line_reader.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace stdio_lines {
namespace {

// After its line has been delivered, a larger buffer is passed to the shared Scratch, which keeps
// or frees it, to save memory in idle lanes.
constexpr std::size_t small_buffer = 16u << 10;

ssize_t read_some(int fd, char *to, std::size_t room) {
  ssize_t n = 0;
  do {
    n = ::read(fd, to, room);
  } while (n < 0 && errno == EINTR);
  return n;
}

const char *find_newline(std::string_view data) {
  return static_cast<const char *>(std::memchr(data.data(), '\n', data.size()));
}

}  // namespace

ReadEnd LineReader::read(int fd, Scratch &scratch, LineSink &sink, std::size_t budget) {
  for (std::size_t used = 0; used < budget;) {
    if (paused_) return ReadEnd::drained;
    const bool direct = partial_.size() >= large_message && partial_.reserve(Scratch::size);
    char *to = direct ? partial_.tail() : scratch.data.get();
    const std::size_t room = direct ? std::min(partial_.room(), max_read) : Scratch::size;
    const ssize_t n = read_some(fd, to, room);
    if (n < 0) return errno == EAGAIN ? ReadEnd::drained : ReadEnd::failed;
    if (n == 0) return ReadEnd::ended;
    const auto got = static_cast<std::size_t>(n);
    sink.on_read({to, got});
    const bool proceed = direct ? grown(got, scratch, sink) : consume({to, got}, scratch, sink);
    if (!proceed) return ReadEnd::stopped;
    if (got < room) return ReadEnd::drained;
    used += got;
  }
  return ReadEnd::budget;
}

bool LineReader::resume(Scratch &scratch, LineSink &sink) {
  paused_ = false;
  const Bytes kept = std::move(kept_);
  return consume(kept.view(), scratch, sink);
}

void LineReader::finish(LineSink &sink) {
  const Bytes last = std::move(partial_);
  sink.on_left({});
  if (!skipping_ && !last.empty()) emit(last.view(), sink);
  skipping_ = false;
}

bool LineReader::consume(std::string_view data, Scratch &scratch, LineSink &sink) {
  while (!data.empty()) {
    if (paused_) return kept_.append(data);
    const char *newline = find_newline(data);
    if (newline == nullptr) return keep(data, scratch, sink);
    const auto n = static_cast<std::size_t>(newline - data.data());
    const std::string_view line = data.substr(0, n);
    data.remove_prefix(n + 1);
    sink.on_left(data);
    if (!end_line(line, scratch, sink)) return false;
  }
  return true;
}

bool LineReader::keep(std::string_view data, Scratch &scratch, LineSink &sink) {
  if (skipping_) return true;
  if (partial_.size() + data.size() > max_line_) {
    return too_long(partial_.empty() ? data : partial_.view(), sink);
  }
  if (data.size() >= small_buffer && partial_.capacity() == 0) {
    partial_ = std::move(scratch.spare);
  }
  return partial_.append(data) || too_long(data, sink);
}

bool LineReader::end_line(std::string_view rest, Scratch &scratch, LineSink &sink) {
  if (skipping_) {
    skipping_ = false;
    return true;
  }
  const std::size_t size = partial_.size() + rest.size();
  if (size > max_line_ || (!partial_.empty() && !partial_.append(rest))) {
    const bool proceed = too_long(partial_.empty() ? rest : partial_.view(), sink);
    skipping_ = false;
    return proceed;
  }
  if (partial_.empty()) return emit(rest, sink);
  Bytes whole = std::move(partial_);
  const bool proceed = emit(whole.view(), sink);
  if (whole.capacity() > small_buffer) {
    scratch.give_back(std::move(whole));
  } else {
    whole.clear();
    partial_ = std::move(whole);
  }
  return proceed;
}

// Processes n bytes that were read into the buffer of the incomplete line.
bool LineReader::grown(std::size_t n, Scratch &scratch, LineSink &sink) {
  const char *newline = find_newline({partial_.tail(), n});
  partial_.added(n);
  if (newline == nullptr) {
    return partial_.size() <= max_line_ || too_long(partial_.view(), sink);
  }
  Bytes whole = std::move(partial_);
  const auto end = static_cast<std::size_t>(newline - whole.data());
  const bool fits = end <= max_line_;
  sink.on_left(whole.view().substr(end + 1));
  bool proceed = fits ? emit(whole.view().substr(0, end), sink) : sink.on_too_long(whole.view());
  proceed = proceed && consume(whole.view().substr(end + 1), scratch, sink);
  scratch.give_back(std::move(whole));
  return proceed;
}

bool LineReader::too_long(std::string_view start, LineSink &sink) {
  skipping_ = true;
  const bool proceed = sink.on_too_long(start);
  partial_.release();
  return proceed;
}

bool LineReader::emit(std::string_view line, LineSink &sink) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  const bool blank = line.find_first_not_of(" \t\r") == std::string_view::npos;
  return blank || sink.on_line(line);
}

}  // namespace stdio_lines
