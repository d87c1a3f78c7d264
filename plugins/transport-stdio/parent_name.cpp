#include "transport-stdio/parent_name.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "stdio-lines/text.hpp"

namespace transport_stdio {
namespace {

constexpr std::size_t kernel_bytes = 15;
constexpr std::size_t max_read = 4096;  // enough for a path and a name

std::string read_file(const std::string &path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string text(max_read, '\0');
  const ssize_t n = ::read(fd, text.data(), text.size());
  ::close(fd);
  text.resize(n < 0 ? 0 : static_cast<std::size_t>(n));
  return text;
}

// Removes an incomplete UTF-8 character at the end, which the kernel may have truncated.
std::string_view whole_characters(std::string_view text) noexcept {
  for (std::size_t behind = 1; behind <= 3 && behind <= text.size(); ++behind) {
    const auto byte = static_cast<unsigned char>(text[text.size() - behind]);
    if ((byte & 0xC0) == 0x80) continue;  // a continuation byte
    const std::size_t size = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return size > behind ? text.substr(0, text.size() - behind) : text;
  }
  return text;
}

}  // namespace

std::string_view whole_name(std::string_view comm, std::string_view command_line) noexcept {
  if (comm.ends_with('\n')) comm.remove_suffix(1);
  if (comm.size() < kernel_bytes) return comm;
  std::string_view program = command_line.substr(0, command_line.find('\0'));
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  return program.starts_with(comm) ? program : whole_characters(comm);
}

std::string parent_name() {
  const std::string process = "/proc/" + std::to_string(::getppid());
  const std::string comm = read_file(process + "/comm");
  const std::string command_line = read_file(process + "/cmdline");
  return stdio_lines::cleaned(whole_name(comm, command_line), max_parent_name);
}

}  // namespace transport_stdio
