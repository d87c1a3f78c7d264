// Implements the file_move and file_delete tools.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "builtin-files/remove.hpp"
#include "builtin-files/tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

bool rename_place(const Place &from, const Place &to, bool overwrite) noexcept {
  const unsigned flags = overwrite ? 0 : RENAME_NOREPLACE;
  return ::syscall(SYS_renameat2, from.folder.get(), from.name.c_str(), to.folder.get(),
                   to.name.c_str(), flags) == 0;
}

std::string move_problem(int error, const std::string &from, const std::string &to,
                         bool overwrite) {
  // Some file systems report a folder that is not empty as EEXIST.
  switch (overwrite && error == EEXIST ? ENOTEMPTY : error) {
    case ENOENT:
      return "there is no " + shown(from);
    case EEXIST:
      return shown(to) + " already exists; set overwrite to true to replace a file";
    case ENOTEMPTY:
      return "the folder " + shown(to) + " is not empty, so it cannot be replaced";
    case EINVAL:
      return shown(from) + " cannot be moved to " + shown(to) +
             ": a folder cannot be moved into itself, or the file system does not support this "
             "move";
    case EISDIR:
    case ENOTDIR:
      return "cannot replace a folder with a file, or a file with a folder: " + shown(to);
    case EXDEV:
      return shown(from) + " cannot be moved to another file system: " + shown(to) +
             "; copy it and delete the original";
    default:
      return shown(from) + " cannot be moved to " + shown(to) + ": " + bh::error_name(error);
  }
}

std::uint64_t size_of(const Place &place) {
  struct stat s{};
  if (::fstatat(place.folder.get(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) != 0) return 0;
  return S_ISREG(s.st_mode) ? static_cast<std::uint64_t>(s.st_size) : 0;
}

std::string deleted(const Call &call, const std::string &path, std::uint64_t files,
                    std::uint64_t size) {
  call.note("deleted", path, size);
  const std::string count = std::to_string(files);
  return tool_kit::text_result(
      "Deleted " + path + (files > 1 ? " (" + count + " files and folders)" : "") + ".\n",
      "{\"path\":" + bh::json::quoted(path) + ",\"deleted\":" + count + "}");
}

// On a folder, unlinkat() fails with EISDIR or EPERM, depending on the file system, so the type is
// checked first.
bool is_folder(const Place &place) {
  struct stat s{};
  return ::fstatat(place.folder.get(), place.name.c_str(), &s, AT_SYMLINK_NOFOLLOW) == 0 &&
         S_ISDIR(s.st_mode);
}

std::string delete_one(const Call &call, const Place &place, const std::string &path) {
  const std::uint64_t size = size_of(place);
  const int flags = is_folder(place) ? AT_REMOVEDIR : 0;
  if (::unlinkat(place.folder.get(), place.name.c_str(), flags) == 0) {
    return deleted(call, path, 1, size);
  }
  if (errno == ENOENT) return tool_kit::error_result("there is no " + shown(path));
  if (errno == ENOTEMPTY || errno == EEXIST) {
    return tool_kit::error_result(
        "the folder " + shown(path) +
        " is not empty; set recursive to true to delete the folder and its contents");
  }
  return tool_kit::error_result(shown(path) + " cannot be deleted: " + bh::error_name(errno));
}

std::string delete_tree(const Call &call, const Place &place, const std::string &path) {
  const Removed removed = remove_tree(place.folder.get(), place.name, [&call, n = 0u]() mutable {
    call.report(++n, 0);
    return call.must_stop();
  });
  if (!removed.problem.empty()) {
    if (removed.files > 0) call.note("deleted", path + "/...", 0);
    return tool_kit::error_result(removed.problem + "; " + std::to_string(removed.files) +
                                  " files and folders below " + shown(path) +
                                  " were already deleted");
  }
  if (removed.files == 0) return tool_kit::error_result("there is no " + shown(path));
  return deleted(call, path, removed.files, 0);
}

}  // namespace

std::string file_move(const Call &call) {
  const Workspace &workspace = call.workspace_to_change();
  const std::string from = call.arguments.text("from");
  const std::string to = call.arguments.text("to");
  const bool overwrite = call.arguments.flag("overwrite", false);
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  const Place source = workspace.place(from);
  if (!source.problem.empty()) return tool_kit::error_result(source.problem);
  const Place target = workspace.place(to, true);
  if (!target.problem.empty()) return tool_kit::error_result(target.problem);
  const std::uint64_t size = size_of(source);
  if (!rename_place(source, target, overwrite)) {
    return tool_kit::error_result(move_problem(errno, from, to, overwrite));
  }
  call.note("deleted", from, size);
  call.note("created", to, size);
  return tool_kit::text_result(
      "Moved " + from + " to " + to + ".\n",
      "{\"from\":" + bh::json::quoted(from) + ",\"to\":" + bh::json::quoted(to) + "}");
}

std::string file_delete(const Call &call) {
  const Workspace &workspace = call.workspace_to_change();
  const std::string path = call.arguments.text("path");
  const bool recursive = call.arguments.flag("recursive", false);
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  const Place place = workspace.place(path);
  if (!place.problem.empty()) return tool_kit::error_result(place.problem);
  return recursive ? delete_tree(call, place, path) : delete_one(call, place, path);
}

}  // namespace builtin_files
