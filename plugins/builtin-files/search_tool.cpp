// Implements file_search, which finds files by name and lines by content.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "builtin-files/glob.hpp"
#include "builtin-files/tools.hpp"
#include "builtin-files/walk.hpp"
#include "tool-kit/pattern.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

constexpr std::int64_t max_content_bytes = 4u << 20;  // contents of larger files are not searched
constexpr std::size_t max_line_bytes = 300;           // longer lines are truncated in the response
constexpr std::size_t max_answer_bytes = max_text_bytes;
constexpr std::uint64_t lines_between_looks = 64;  // lines searched between calls to must_stop()

struct Search {
  const Call &call;
  std::string glob;
  std::string content;                       // lowercase if ignore_case is set
  std::optional<tool_kit::Pattern> pattern;  // set if `content` is a regular expression
  bool ignore_case;
  std::uint64_t max_matches;

  std::uint64_t matches = 0;
  std::uint64_t too_large = 0;
  bool stopped = false;  // the call was stopped in the middle of a file
  std::string reason;
  std::string text;
  std::string json;

  bool full() const noexcept {
    return matches >= max_matches || text.size() + json.size() > max_answer_bytes;
  }
};

void add_match(Search *search, const std::string &path, std::uint64_t line, std::string_view text) {
  ++search->matches;
  if (!search->json.empty()) search->json += ',';
  search->json += "{\"path\":" + bh::json::quoted(path);
  search->text += path;
  if (line != 0) {
    text = bh::cut_text(text, max_line_bytes);
    search->json += ",\"line\":" + std::to_string(line) + ",\"text\":" + bh::json::quoted(text);
    search->text += ":" + std::to_string(line) + ": " + std::string(text);
  }
  search->json += '}';
  search->text += '\n';
}

// Returns the file's text, or an empty string if the file is binary, too large or unreadable.
std::string read_text(Search *search, const Found &found) {
  const Fd fd = Workspace::open_below(found.folder, found.name, O_RDONLY | O_NOFOLLOW);
  struct stat s{};
  if (!fd.valid() || ::fstat(fd.get(), &s) != 0 || !S_ISREG(s.st_mode)) return {};
  if (s.st_size > max_content_bytes) {
    ++search->too_large;
    return {};
  }
  std::string bytes(static_cast<std::size_t>(s.st_size), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t n = ::read(fd.get(), bytes.data() + size, bytes.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  bytes.resize(size);
  return bytes.find('\0') == bytes.npos ? bytes : std::string();
}

// Uses memmem(), which takes linear time; string_view::find() can take quadratic time.
std::size_t find(std::string_view where, std::string_view what, std::size_t from) noexcept {
  const void *at = ::memmem(where.data() + from, where.size() - from, what.data(), what.size());
  if (at == nullptr) return where.npos;
  return static_cast<std::size_t>(static_cast<const char *>(at) - where.data());
}

std::string_view without_return(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Adds the lines that match the pattern. Returns false if the response is full or the call must
// stop.
bool search_by_pattern(Search *search, const Found &found) {
  const std::string bytes = read_text(search, found);
  const auto must_stop = [&] { return search->stopped = search->call.must_stop(); };
  std::uint64_t line = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string_view text = without_return(std::string_view(bytes).substr(at, end - at));
    at = end + 1;
    if (++line % lines_between_looks == 0) must_stop();
    const bool found_one = !search->stopped && search->pattern->finds(text, must_stop);
    if (search->stopped) return false;
    if (!found_one) continue;
    if (search->full()) return false;
    add_match(search, found.path, line, text);
  }
  return true;
}

// Adds the lines that contain the literal string. Returns false if the response is full.
bool search_lines(Search *search, const Found &found) {
  const std::string bytes = read_text(search, found);
  std::string folded;
  if (search->ignore_case) {
    folded = bytes;
    std::transform(folded.begin(), folded.end(), folded.begin(), bh::lower);
  }
  const std::string_view where = search->ignore_case ? folded : bytes;
  std::uint64_t line = 1;
  std::size_t counted = 0;
  for (std::size_t at = find(where, search->content, 0); at != where.npos;) {
    if (search->full()) return false;
    line += static_cast<std::uint64_t>(
        std::count(where.begin() + static_cast<std::ptrdiff_t>(counted),
                   where.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    const std::size_t begin = at == 0 ? 0 : where.rfind('\n', at - 1) + 1;  // npos + 1 is 0
    const std::size_t end = std::min(where.find('\n', at), where.size());
    add_match(search, found.path, line,
              without_return(std::string_view(bytes).substr(begin, end - begin)));
    counted = at;
    at = end == where.size() ? where.npos : find(where, search->content, end);
  }
  return true;
}

bool visit(Search *search, const Found &found) {
  if (!search->glob.empty() && !glob_matches(search->glob, found.path)) return true;
  if (search->content.empty()) {
    if (search->full()) return false;
    add_match(search, found.is_folder ? found.path + "/" : found.path, 0, {});
    return true;
  }
  if (found.is_folder) return true;
  return search->pattern ? search_by_pattern(search, found) : search_lines(search, found);
}

std::string result(Search *search) {
  std::string &text = search->text;
  if (search->matches == 0) text = "No matches.\n";
  if (search->too_large > 0) {
    text += std::to_string(search->too_large) + " files larger than 4 MiB were not searched.\n";
    if (search->reason.empty()) search->reason = "files larger than 4 MiB were not searched";
  }
  const bool complete = search->reason.empty();
  if (!complete) text += "The search is not complete: " + search->reason + ".\n";
  std::string json = "{\"matches\":[" + search->json + "],\"complete\":";
  json += complete ? "true" : "false,\"reason\":" + bh::json::quoted(search->reason);
  return tool_kit::text_result(text, json + "}");
}

}  // namespace

std::string file_search(const Call &call) {
  const Workspace &workspace = call.workspace();
  const std::string path = call.arguments.text("path", ".");
  Search search{.call = call,
                .glob = call.arguments.text("glob"),
                .content = call.arguments.text("content"),
                .pattern = {},
                .ignore_case = call.arguments.flag("ignore_case", false),
                .max_matches = call.arguments.whole("max_matches", 100, 1, max_matches),
                .reason = {},
                .text = {},
                .json = {}};
  const bool regex = call.arguments.flag("regex", false);
  const WalkOptions options{.gitignore = call.arguments.flag("gitignore", false)};
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  if (search.glob.empty() && search.content.empty()) {
    return tool_kit::error_result("specify \"glob\", \"content\" or both");
  }
  if (search.content.size() > max_wanted_bytes) {
    return tool_kit::error_result("\"content\" is longer than 4096 bytes");
  }
  if (search.content.find('\n') != std::string::npos) {
    return tool_kit::error_result(
        "\"content\" is searched within lines and cannot contain a line break");
  }
  if (regex) {
    std::string problem;
    const auto letters = search.ignore_case ? tool_kit::Case::ignored : tool_kit::Case::counts;
    if (!search.pattern.emplace().parse("content", search.content, letters, &problem)) {
      return tool_kit::error_result(problem);
    }
  } else if (search.ignore_case) {
    std::transform(search.content.begin(), search.content.end(), search.content.begin(), bh::lower);
  }
  Opened opened = workspace.open(path, O_RDONLY | O_DIRECTORY);
  if (!opened.fd.valid()) return tool_kit::error_result(opened.problem);
  bool full = false;
  const auto on_entry = [&](const Found &found) {
    full = !visit(&search, found);
    return !full;
  };
  search.reason = walk(call, std::move(opened.fd), path, on_entry, options);
  if (full) search.reason = search.stopped ? call.stop_reason() : "there are more matches";
  return result(&search);
}

}  // namespace builtin_files
