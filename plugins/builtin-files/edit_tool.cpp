// Implements file_edit, which replaces a literal string in a file.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "builtin-files/replacement.hpp"
#include "builtin-files/text_diff.hpp"
#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

constexpr std::size_t max_diff_bytes = 64u << 10;
constexpr std::size_t max_places = 100'000;

struct Edit {
  std::string path;
  std::string from;
  std::string to;
  bool all;
  bool dry_run;
};

struct Content {
  std::string text;
  struct stat status{};
  std::string problem;
};

Content read_content(const Place &place, const std::string &path) {
  Content out;
  const Fd fd =
      Workspace::open_below(place.folder.get(), place.name.c_str(), O_RDONLY | O_NOFOLLOW);
  if (!fd.valid() && errno == ENOENT) {
    out.problem = "there is no " + shown(path) + "; create it with file_write";
  } else if (!fd.valid()) {
    out.problem =
        shown(path) + " cannot be opened: " +
        (errno == ELOOP ? "it is a symbolic link; edit its target" : bh::error_name(errno));
  } else if (::fstat(fd.get(), &out.status) != 0 || !S_ISREG(out.status.st_mode)) {
    out.problem = shown(path) + " is not a regular file";
  } else if (static_cast<std::uint64_t>(out.status.st_size) > max_edit_bytes) {
    out.problem = shown(path) + " is larger than 16 MiB";
  }
  if (!out.problem.empty()) return out;
  // Reads one byte more than the file size to detect whether the file has grown.
  out.text.resize(static_cast<std::size_t>(out.status.st_size) + 1);
  std::size_t size = 0;
  while (size < out.text.size()) {
    const ssize_t n = ::read(fd.get(), out.text.data() + size, out.text.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) out.problem = "reading " + shown(path) + " failed: " + bh::error_name(errno);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size == out.text.size()) out.problem = shown(path) + " is being modified; try again";
  out.text.resize(size);
  return out;
}

// Uses memmem(), which takes linear time; string_view::find() can take quadratic time.
std::vector<std::size_t> places_of(std::string_view text, std::string_view what) {
  std::vector<std::size_t> out;
  for (std::size_t at = 0; out.size() <= max_places;) {
    const void *found = ::memmem(text.data() + at, text.size() - at, what.data(), what.size());
    if (found == nullptr) break;
    at = static_cast<std::size_t>(static_cast<const char *>(found) - text.data());
    out.push_back(at);
    at += what.size();
  }
  return out;
}

std::string places_problem(const Edit &edit, const std::vector<std::size_t> &places,
                           std::size_t size) {
  if (places.empty()) {
    return "old_text is not in " + shown(edit.path) +
           "; it must match exactly, including whitespace and line endings: read the file again";
  }
  if (places.size() > max_places) return "old_text occurs more than 100,000 times";
  if (size + places.size() * edit.to.size() > max_edit_bytes + places.size() * edit.from.size()) {
    return "the file would become larger than 16 MiB";
  }
  if (places.size() == 1 || edit.all) return {};
  return "old_text occurs " + std::to_string(places.size()) + " times in " + shown(edit.path) +
         "; include more of the surrounding text, or set all to true";
}

bool is_unchanged(const Place &place, const struct stat &before) {
  struct stat now{};
  return ::fstatat(place.folder.get(), place.name.c_str(), &now, AT_SYMLINK_NOFOLLOW) == 0 &&
         now.st_ino == before.st_ino && now.st_dev == before.st_dev &&
         now.st_size == before.st_size && now.st_mtim.tv_sec == before.st_mtim.tv_sec &&
         now.st_mtim.tv_nsec == before.st_mtim.tv_nsec &&
         now.st_ctim.tv_sec == before.st_ctim.tv_sec &&
         now.st_ctim.tv_nsec == before.st_ctim.tv_nsec;
}

// Writes `text` to the file unless the file has changed since it was read. Returns the error, or an
// empty string on success.
std::string put(const Workspace &workspace, const Place &place, Replacement *file,
                const Content &old, const std::string &text) {
  std::string problem;
  if (!workspace.take(text.size())) return budget_problem(workspace);
  if (!file->write(text, &problem)) return problem;
  if (!is_unchanged(place, old.status)) {
    return shown(place.name) + " was changed by another process; read it again";
  }
  file->commit(old.status.st_mode, Over::files, &problem);
  return problem;
}

std::string success(const Edit &edit, std::size_t count, const std::string &diff) {
  std::string json = "{\"path\":" + bh::json::quoted(edit.path);
  json += ",\"replacements\":" + std::to_string(count);
  json += std::string(",\"dry_run\":") + (edit.dry_run ? "true" : "false");
  json += ",\"diff\":" + bh::json::quoted(diff) + "}";
  const std::string head = edit.dry_run ? "Nothing was written; this would change:\n" : "";
  return tool_kit::text_result(head + diff, json);
}

std::string run(const Call &call, const Workspace &workspace, const Edit &edit) {
  const Place place = workspace.place(edit.path);
  if (!place.problem.empty()) return tool_kit::error_result(place.problem);
  std::string problem;
  Replacement file;  // created before reading, so a concurrent edit of the same file is rejected
  if (!edit.dry_run && !file.begin(place, &problem)) return tool_kit::error_result(problem);
  const Content old = read_content(place, edit.path);
  if (!old.problem.empty()) return tool_kit::error_result(old.problem);
  const std::vector<std::size_t> places = places_of(old.text, edit.from);
  problem = places_problem(edit, places, old.text.size());
  if (!problem.empty()) return tool_kit::error_result(problem);
  const std::string text = replaced(old.text, places, edit.from, edit.to);
  if (!edit.dry_run) problem = put(workspace, place, &file, old, text);
  if (!problem.empty()) return tool_kit::error_result(problem);
  if (!edit.dry_run) call.note("modified", edit.path, text.size());
  return success(edit, places.size(),
                 replacement_diff(edit.path, old.text, places, edit.from, edit.to, max_diff_bytes));
}

}  // namespace

std::string file_edit(const Call &call) {
  const Workspace &workspace = call.workspace_to_change();
  const Edit edit{.path = call.arguments.text("path"),
                  .from = call.arguments.text("old_text"),
                  .to = call.arguments.text("new_text"),
                  .all = call.arguments.flag("all", false),
                  .dry_run = call.arguments.flag("dry_run", false)};
  const bool has_new = call.arguments.has("new_text");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  if (edit.from.empty())
    return tool_kit::error_result("specify the text to replace as \"old_text\"");
  if (!has_new)
    return tool_kit::error_result("specify \"new_text\"; an empty string removes old_text");
  if (edit.from == edit.to) return tool_kit::error_result("old_text and new_text are identical");
  return run(call, workspace, edit);
}

}  // namespace builtin_files
