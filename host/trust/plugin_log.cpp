#include "trust/plugin_log.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "bulkhead/cpp/text.hpp"
#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

std::string event_line(const PluginEvent &event) {
  std::string out = "{";
  bh::json::append_member(&out, "at", event.at);
  bh::json::append_member(&out, "event", event.event);
  bh::json::append_member(&out, "id", event.id);
  bh::json::append_member(&out, "version", event.version);
  bh::json::append_member(&out, "sha256", event.sha256);
  bh::json::append_member(&out, "signer", event.signer);
  bh::json::append_member(&out, "note", bh::one_line(event.note, PluginLog::max_note_bytes));
  return out + "}\n";
}

void read_lines(std::string_view text, std::vector<PluginEvent> *out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with('{') || !mcp::valid_json(line)) continue;
    PluginEvent event;
    const std::string_view at = mcp::member(line, "at");
    std::from_chars(at.data(), at.data() + at.size(), event.at);
    event.event = bh::json::member_text(line, "event");
    event.id = bh::json::member_text(line, "id");
    event.version = bh::json::member_text(line, "version");
    event.sha256 = bh::json::member_text(line, "sha256");
    event.signer = bh::json::member_text(line, "signer");
    event.note = bh::json::member_text(line, "note");
    out->push_back(std::move(event));
  }
}

}  // namespace

Result<void> PluginLog::append(const PluginEvent &event) {
  if (auto made = make_private_dir(folder_); !made) return made;
  const auto lock = lock_file(path_ + ".lock", lock_wait_ms);
  if (!lock) return std::unexpected(lock.error());
  struct stat status{};
  if (::lstat(path_.c_str(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) > max_bytes) {
    if (::rename(path_.c_str(), (path_ + ".1").c_str()) != 0)
      return fail(BH_E_IO, describe_errno(path_, errno));
  }
  const OwnedFd fd(::open(path_.c_str(),
                          O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  if (!fd || ::fstat(fd.get(), &status) != 0) return fail(BH_E_IO, describe_errno(path_, errno));
  if (!S_ISREG(status.st_mode)) return fail(BH_E_DENIED, path_ + " is not a regular file");
  std::string line = event_line(event);
  // If the program was killed while it wrote the last line, that line has no end.
  char last = '\n';
  if (status.st_size > 0 && ::pread(fd.get(), &last, 1, status.st_size - 1) == 1 && last != '\n')
    line.insert(line.begin(), '\n');
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()) ||
      ::fsync(fd.get()) != 0) {
    return fail(BH_E_IO, describe_errno(path_, errno));
  }
  return {};
}

Result<std::vector<PluginEvent>> PluginLog::read() const {
  std::vector<PluginEvent> out;
  for (const std::string &path : {path_ + ".1", path_}) {
    // One line may begin below the limit and end above it.
    const auto text = read_private(path, max_bytes + 16 * max_note_bytes);
    if (!text && text.error().code == BH_E_NOT_FOUND) continue;
    if (!text) return std::unexpected(text.error());
    read_lines(*text, &out);
  }
  return out;
}

}  // namespace bulkhead::program
