// Plans a sandboxed server's view of the file system before the server starts.
//
// There are two modes. `home_read_only` shows everything that the user may read, except
// credentials, other programs' secrets and the gateway's own files. `strict` shows only the system
// folders, the program and granted paths. In both modes, of the files that exist outside the
// sandbox, only granted paths are writable. In addition, a server has private caches and scratch
// folders (/tmp, /var/tmp, /dev/shm).
//
// A folder that contains a hidden path is mirrored: a read-only tmpfs is mounted over it, and the
// visible entries that exist at the start are bind-mounted into it. Entries that appear later, such
// as new credentials or replaced files, are not visible. Nothing is created in the folder itself.
// A home directory is always mirrored, unless `strict` hides all of it or it is a system folder.
// Sockets are not visible in a mirror, because a read-only mount does not prevent connections. /run
// is hidden except for the paths in hidden_places.hpp.
//
// Granted paths are those in the definition's args, in the values of configured variables, in cwd
// and in sandbox_paths. If a file is granted, its folder is granted as well, unless the folder
// contains hidden paths or other programs' files. This is why `npx -y
// @modelcontextprotocol/server-filesystem /some/path` works without additional configuration.
//
// Symbolic links in granted paths are followed only if no server could have created them
// (link_rule.hpp), and never to a home directory or a hidden path: these must be named themselves.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/child_policy.hpp"
#include "sandbox/mount_kind.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {

struct ViewStep {
  using Kind = MountKind;
  static constexpr std::size_t no_mirror = static_cast<std::size_t>(-1);
  Kind kind = Kind::bind;
  std::string path;      // absolute, without symbolic links
  std::string source;    // for bind: the path to mount; for link: the target of the link
  bool instead = false;  // for bind: the source is a different folder, mounted over `path`
  bool writable = false;
  bool folder = true;
  bool make = false;               // the target is in a folder that an earlier step replaces
  bool holds = false;              // for empty_folder: later steps create entries in it
  bool pin = false;                // for bind: mounted onto itself; see pin_parents()
  bool needed = false;             // for bind: the server must not start without it
  std::size_t mirror = no_mirror;  // for entry: index of the mirror that contains it
};

struct ChildView {
  // The maximum number of pins. A server can create folders and links that cause pins.
  static constexpr std::size_t most_pins = 256;

  std::vector<ViewStep> steps;       // parents precede their contents
  std::vector<std::string> ignored;  // named paths that are not granted, each with a reason
  std::vector<std::string> notes;    // notes for the operator, as complete sentences
  // Hidden paths and home directories in a scratch folder. With mounts, the scratch folder hides
  // them, so steps that would only hide them are omitted.
  std::vector<std::string> in_scratch;
  // Hidden targets of links that a server can remove. They must stay hidden at later starts; see
  // ViewRequest::also_hidden.
  std::vector<std::string> keep_hidden;
  std::string refused;  // if not empty, the server must not start, for this reason
};

struct ViewRequest {
  const ChildPolicy *policy = nullptr;
  std::string program;  // the file to execute
  std::string home;     // the gateway's HOME, which contains its user's caches; empty: none
  std::vector<std::string> homes;  // additional home directories whose secrets are hidden
  // Paths of services that the gateway's environment names (agents, session bus, runtime folder).
  std::vector<std::string> services;
  std::vector<std::string> engines;  // sockets of container engines that the environment names
  std::string cache;                 // an existing private folder of the server; empty: none
  uid_t user = 0;
  // The gateway's own files and folders. They are hidden from every server, even if a definition
  // names them.
  std::vector<std::string> own;
  // The gateway's executable and plugins, and the folders of plugins. No server may change them.
  std::vector<std::string> programs;
  // Folders that this server or others can change, or could change earlier. Symbolic links in them
  // are followed only within the folder.
  std::vector<std::string> changeable;
  bool distrust_links = false;           // `changeable` is incomplete
  std::vector<std::string> also_hidden;  // further paths to hide
  KnownPlaces *places = nullptr;         // null: look-ups are not cached
};

// Folders in which every program can create links, including servers that were started without
// namespaces. They belong in ViewRequest::changeable.
inline constexpr const char *shared_folders[] = {"/tmp", "/var/tmp", "/dev/shm"};

// Plans the view from the current state of the file system. Creates folders in `cache` but changes
// nothing else.
ChildView plan_view(const ViewRequest &request);

}  // namespace bulkhead
