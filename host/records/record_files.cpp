#include "records/record_files.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "command_line/commands.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

namespace fs = std::filesystem;
using record_store::SegmentFile;

// A profile section that enables recording. The user is asked to add it to the profile.
constexpr std::string_view profile_block =
    "    [telemetry.records]\n"
    "    plugin = \"telemetry-sqlite\"";

Result<RecordFiles> named_file(const std::string &path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return fail(BH_E_NOT_FOUND, path + ": no such file");
  if (!S_ISREG(status.st_mode)) return fail(BH_E_INVALID, path + " is not a regular file");
  SegmentFile file;
  file.path = path;
  file.bytes = static_cast<std::uint64_t>(status.st_size);
  // A file that was copied and renamed has no position in a chain.
  record_store::parse_segment_name(fs::path(path).filename().native(), &file.chain, &file.number);
  RecordFiles out;
  out.folders.push_back({fs::path(path).parent_path().native(), "", {file}});
  return out;
}

}  // namespace

std::vector<SegmentFile> RecordFiles::newest_first() const {
  std::vector<SegmentFile> out;
  for (const Folder &folder : folders) {
    out.insert(out.end(), folder.files.begin(), folder.files.end());
  }
  std::sort(out.begin(), out.end(), [](const SegmentFile &a, const SegmentFile &b) {
    return a.changed_ns != b.changed_ns ? a.changed_ns > b.changed_ns : a.path > b.path;
  });
  return out;
}

Result<RecordFiles> find_records(const Arguments &arguments) {
  auto found = look_for_records(arguments);
  if (found && found->folders.empty()) return fail(BH_E_NOT_FOUND, found->none);
  return found;
}

Result<RecordFiles> look_for_records(const Arguments &arguments) {
  if (!arguments.records.file.empty()) return named_file(arguments.records.file);
  const auto loaded = load_to_look(arguments, Transports::none);
  if (!loaded) {
    std::string text = "cannot locate the session database because the configuration is invalid:";
    for (const std::string &line : loaded.error()) text += "\n" + line;
    return fail(BH_E_INVALID, text);
  }
  RecordFiles out;
  out.state_dir = loaded->profile.state_dir;
  out.naming = loaded->profile.naming;
  for (const ServerDef &def : loaded->profile.servers) out.servers.push_back(def.name);
  for (const PluginUse &use : loaded->profile.tools) out.servers.push_back(use.id);
  const std::string below = out.state_dir + "/plugins";
  std::error_code ec;
  for (fs::directory_iterator at(below, ec), end; !ec && at != end; at.increment(ec)) {
    RecordFiles::Folder folder{at->path().native(), at->path().filename().native(),
                               record_store::segment_files(at->path().native())};
    if (!folder.files.empty()) out.folders.push_back(std::move(folder));
  }
  if (!out.folders.empty()) return out;
  const bool wanted =
      std::any_of(loaded->profile.telemetry.begin(), loaded->profile.telemetry.end(),
                  [](const PluginUse &use) { return use.plugin.ends_with("telemetry-sqlite"); });
  out.none = "no session database found in " + below +
             (wanted ? "; it is created when the gateway starts"
                     : ". To use another profile, pass --config. To record calls, add this to the "
                       "profile (TOML) and restart the gateway:\n\n" +
                           std::string(profile_block));
  return out;
}

void note_left_out(const std::vector<std::string> &files) {
  for (const std::string &file : files) complain("skipped: " + file, exit_ok);
}

void note_unread(const RecordReader &reader) {
  note_left_out(reader.left_out());
  if (reader.files() >= reader.usable_files()) return;
  complain("only the newest " + std::to_string(reader.files()) + " of " +
               std::to_string(reader.usable_files()) +
               " files were read; use --file to read another file",
           exit_ok);
}

}  // namespace bulkhead::program
