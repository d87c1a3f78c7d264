// Implements dir_tree, which shows nested folders.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <sys/stat.h>

#include "builtin-files/tools.hpp"
#include "builtin-files/walk.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

constexpr std::size_t default_depth = 3, max_tree_depth = 32;

struct Tree {
  std::size_t limit;
  std::size_t count = 0;
  std::string text;
  std::string json;
};

// Adds an entry. Returns false if the entry limit is reached.
bool add(Tree *tree, const Found &found) {
  if (tree->count == tree->limit) return false;
  struct stat s{};
  // Skips entries that were removed after the folder was read.
  if (::fstatat(found.folder, found.name, &s, AT_SYMLINK_NOFOLLOW) != 0) return true;
  ++tree->count;
  tree->text.append(2 * found.level, ' ').append(bh::repaired_utf8(found.name));
  if (found.is_folder) tree->text += '/';
  tree->text += '\n';
  if (!tree->json.empty()) tree->json += ',';
  tree->json += entry_json("path", found.path, s) + "}";
  return true;
}

}  // namespace

std::string dir_tree(const Call &call) {
  const Workspace &workspace = call.workspace();
  const std::string path = call.arguments.text("path", ".");
  const std::size_t depth = call.arguments.whole("depth", default_depth, 1, max_tree_depth);
  const WalkOptions options{.gitignore = call.arguments.flag("gitignore", false), .levels = depth};
  Tree tree{.limit = call.arguments.whole("limit", 500, 1, max_entries), .text = {}, .json = {}};
  if (const std::string &p = call.arguments.problem(); !p.empty()) return tool_kit::error_result(p);
  Opened opened = workspace.open(path, O_RDONLY | O_DIRECTORY);
  if (!opened.fd.valid()) return tool_kit::error_result(opened.problem);
  bool full = false;
  const auto on_entry = [&](const Found &found) { return !(full = !add(&tree, found)); };
  std::string reason = walk(call, std::move(opened.fd), path, on_entry, options);
  if (full) reason = "there are more than " + std::to_string(tree.limit) + " entries";
  std::string json = "{\"path\":" + bh::json::quoted(path) + ",\"entries\":[" + tree.json + "]";
  json += std::string(",\"complete\":") + (reason.empty() ? "true" : "false");
  if (!reason.empty()) json += ",\"reason\":" + bh::json::quoted(reason);
  if (tree.text.empty()) tree.text = "The folder is empty.\n";
  if (!reason.empty()) tree.text += "The tree is not complete: " + reason + ".\n";
  return tool_kit::text_result(tree.text, json + "}");
}

}  // namespace builtin_files
