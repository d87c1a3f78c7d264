// Implements file_write, which atomically replaces the whole content of a file.
#include <bulkhead/cpp/json_writer.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "builtin-files/encoding.hpp"
#include "builtin-files/replacement.hpp"
#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

struct Wanted {
  std::string path;
  std::string content;
  bool is_text;
  bool create_only;
  bool parents;
};

Wanted wanted_of(const Call &call) {
  return {.path = call.arguments.text("path"),
          .content = call.arguments.text("content"),
          .is_text = call.arguments.choice("encoding", {"text", "base64"}) == "text",
          .create_only = call.arguments.flag("create_only", false),
          .parents = call.arguments.flag("parents", true)};
}

// Returns an error if the target may not be replaced, otherwise an empty string. Sets *exists and
// *old if the target exists.
std::string replace_problem(const Place &place, const Wanted &wanted, bool *exists,
                            struct stat *old) {
  *exists = ::fstatat(place.folder.get(), place.name.c_str(), old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!*exists) return {};
  const std::string path = shown(wanted.path);
  if (wanted.create_only) return path + " already exists; omit create_only to replace it";
  if (S_ISDIR(old->st_mode)) return path + " is a folder";
  if (S_ISLNK(old->st_mode)) {
    return path + " is a symbolic link; write to its target, or delete the link first";
  }
  return S_ISREG(old->st_mode) ? "" : path + " is not a regular file";
}

std::string success(const Wanted &wanted, bool existed) {
  const std::string bytes = std::to_string(wanted.content.size());
  const std::string json = "{\"path\":" + bh::json::quoted(wanted.path) + ",\"bytes\":" + bytes +
                           ",\"created\":" + (existed ? "false" : "true") + "}";
  return tool_kit::text_result(
      (existed ? "Replaced " : "Created ") + wanted.path + " (" + bytes + " bytes).\n", json);
}

}  // namespace

std::string file_write(const Call &call) {
  const Workspace &workspace = call.workspace_to_change();
  Wanted wanted = wanted_of(call);
  const bool has_content = call.arguments.has("content");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  if (!has_content) return tool_kit::error_result("specify \"content\"; it may be empty");
  std::string bytes;
  if (!wanted.is_text && !from_base64(wanted.content, &bytes)) {
    return tool_kit::error_result("\"content\" is not base64");
  }
  if (!wanted.is_text) wanted.content = std::move(bytes);

  const Place place = workspace.place(wanted.path, wanted.parents);
  if (!place.problem.empty()) return tool_kit::error_result(place.problem);
  bool existed = false;
  struct stat old{};
  std::string problem = replace_problem(place, wanted, &existed, &old);
  if (!problem.empty()) return tool_kit::error_result(problem);
  if (!workspace.take(wanted.content.size()))
    return tool_kit::error_result(budget_problem(workspace));
  Replacement file;
  const mode_t mode = existed ? old.st_mode : new_file_mode;
  if (!file.begin(place, &problem) || !file.write(wanted.content, &problem) ||
      !file.commit(mode, wanted.create_only ? Over::nothing : Over::files, &problem)) {
    return tool_kit::error_result(problem);
  }
  call.note(existed ? "modified" : "created", wanted.path, wanted.content.size());
  return success(wanted, existed);
}

}  // namespace builtin_files
