// What a sandboxed server sees of the file system, planned before it is started.
//
// Modes: `home_read_only` shows everything that the user may read but credentials, other programs'
// secrets and the gateway's own files; nothing can be changed but a scratch /tmp, caches of its own
// and what the server was given by name. `strict` shows only the system's folders, the program and
// what it was given by name.
//
// A folder in which something is to be hidden is mirrored: it is a read-only tmpfs with binds of
// the entries that it has when the server is started and that may be seen. So what is put there
// later is not seen either, credentials that did not exist among it, nor a file that takes the
// place of another. Nothing is made in the folder itself. The home is always mirrored.
//
// "Given by name": a path in the definition's args, in configured variables' values, its cwd, or in
// sandbox_paths. Of a file its folder is given as well, unless something hidden or another
// program's files may lie there. What the person wrote there the server is meant to use, so that
// `npx -y @modelcontextprotocol/server-filesystem /some/path` works as it is.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "sandbox/child_policy.hpp"

namespace bulkhead {

struct ViewStep {
  // In the order of ChildMount::Kind. `mirror`: an empty folder over this one; `entry` and `link`
  // are what is shown in it.
  enum class Kind : std::uint8_t {
    empty_folder,
    empty_file,
    scratch,
    devices,
    processes,
    bind,
    mirror,
    entry,
    link
  };
  static constexpr std::size_t no_mirror = static_cast<std::size_t>(-1);
  Kind kind = Kind::bind;
  std::string path;      // absolute, without links
  std::string source;    // of bind; of link: its text
  bool instead = false;  // of bind: the source is another folder, which hides what lies here
  bool writable = false;
  bool folder = true;
  bool make = false;               // lies in a folder that an earlier step covers
  bool holds = false;              // of empty_folder: later steps lie in it
  std::size_t mirror = no_mirror;  // of entry: the step of the folder that it lies in
};

struct ChildView {
  std::vector<ViewStep> steps;       // parents before what lies in them
  std::vector<std::string> ignored;  // paths given by name that are not granted, with the reason
  std::vector<std::string> notes;    // what else the operator should know, whole sentences
};

// Where the places lie that are looked for in every view: secrets, services, caches. Servers that
// are started together share the answers. What is found counts for `fresh_ns` from the first
// look-up on, then all is looked up anew: what comes to be meanwhile is seen as if this start had
// been that much earlier. Paths that a person or a definition names are never taken from here: what
// a server can write to may have changed since.
class KnownPlaces {
 public:
  static constexpr std::uint64_t fresh_ns = 500'000'000;
  static constexpr std::size_t most = 1024;  // paths

  // Forgets what is no longer fresh. Before a view is planned.
  void refresh(std::uint64_t now_ns);
  // As real_path(). `path`: absolute, without "." and "..".
  std::string real(const std::string &path);

 private:
  std::string look_up(const std::string &path);
  std::unordered_map<std::string, std::string> known_;
  std::uint64_t since_ns_ = 0;
};

struct ViewRequest {
  const ChildPolicy *policy = nullptr;
  std::string program;             // the file to execute
  std::string home;                // of the gateway: where its user's caches lie; empty: none
  std::vector<std::string> homes;  // further ones whose secrets are hidden
  std::string cache;               // a folder that exists, the server's own; empty: none
  uid_t user = 0;
  // The gateway's own files and folders: shown to no server, whatever it was given.
  std::vector<std::string> own;
  KnownPlaces *places = nullptr;  // null: looks everything up
};

// Looks at the file system (links, what exists), changes nothing but making folders in `cache`.
ChildView plan_view(const ViewRequest &request);

// True if `path` is `folder` or lies in it; both without a slash at the end.
bool is_within(std::string_view path, std::string_view folder) noexcept;

// The absolute path without links, "." and ".."; empty: it does not exist.
std::string real_path(const std::string &path);

}  // namespace bulkhead
