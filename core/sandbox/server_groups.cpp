#include "sandbox/server_groups.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace bulkhead {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view folder_name = "bulkhead-";  // followed by the gateway's pid

bool write_text(const std::string &path, const std::string &text) {
  const OwnedFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

bool writable(const std::string &path) {
  return ::access(path.c_str(), W_OK) == 0;
}

// Removes a group and its subgroups. A group that still contains processes cannot be removed and is
// left behind.
void remove_tree(const std::string &path) {
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(path, error)) {
    if (entry.is_directory(error)) ::rmdir(entry.path().c_str());
  }
  ::rmdir(path.c_str());
}

void remove_leftovers_in(const std::string &parent) {
  std::error_code error;
  for (const auto &entry : fs::directory_iterator(parent, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(folder_name)) continue;
    const long pid = std::strtol(name.c_str() + folder_name.size(), nullptr, 10);
    if (pid > 0 && ::kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH) {
      remove_tree(entry.path());
    }
  }
}

// Returns this process's group in each hierarchy. The keys are lists of controllers, as in
// /proc/self/cgroup. The key for version 2 is empty.
std::map<std::string, std::string> own_groups() {
  std::map<std::string, std::string> groups;
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    groups[line.substr(first + 1, second - first - 1)] = line.substr(second + 1);
  }
  return groups;
}

bool has_word(const std::string &list, std::string_view word) {
  return ("," + list + ",").find("," + std::string(word) + ",") != std::string::npos;
}

// The folders in which groups can be created, in order of preference: this process's own group,
// then its parent. The parent is needed because, in version 2, a group that contains processes
// cannot have subgroups with controllers, and the group of a service or session contains processes.
struct Place {
  std::vector<std::string> parents;
  bool unified = false;
};

// Parses /proc/self/mountinfo (proc(5)): id parent device ROOT MOUNT-POINT options ... - TYPE
// source SUPER-OPTIONS.
std::vector<Place> find_places() {
  std::vector<Place> places;
  const auto groups = own_groups();
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, root, point, type, options;
    for (int i = 0; i < 3; ++i) words >> word;
    words >> root >> point;
    while (words >> word && word != "-") {
    }
    words >> type >> word >> options;
    if (type != "cgroup" && type != "cgroup2") continue;
    const bool unified = type == "cgroup2";
    // In version 1, each hierarchy has its own controllers. Skip hierarchies with neither the pids
    // nor the memory controller.
    if (!unified && !has_word(options, "pids") && !has_word(options, "memory")) continue;
    for (const auto &[controllers, path] : groups) {
      const bool this_one = unified
                                ? controllers.empty()
                                : has_word(options, controllers.substr(0, controllers.find(',')));
      if (!this_one || !path.starts_with(root)) continue;
      const std::string below = path.substr(root == "/" ? 0 : root.size());
      const std::string own = below == "/" ? point : point + below;
      Place &place = places.emplace_back();
      place.unified = unified;
      place.parents.push_back(own);
      if (own != point) place.parents.push_back(own.substr(0, own.rfind('/')));
    }
  }
  return places;
}

}  // namespace

ServerGroups::ServerGroups() {
  remove_leftovers();
  for (const Place &place : find_places()) {
    const std::size_t before = hierarchies_.size();
    for (const std::string &parent : place.parents) {
      if (hierarchies_.size() == before) use(parent, place.unified);
    }
  }
}

void ServerGroups::remove_leftovers() {
  for (const Place &place : find_places()) {
    for (const std::string &parent : place.parents) remove_leftovers_in(parent);
  }
}

ServerGroups::~ServerGroups() {
  for (const Hierarchy &hierarchy : hierarchies_) remove_tree(hierarchy.path);
}

void ServerGroups::use(const std::string &parent, bool unified) {
  Hierarchy made;
  made.path = parent + "/" + std::string(folder_name) + std::to_string(::getpid());
  if (::mkdir(made.path.c_str(), 0755) != 0) return;
  made.unified = unified;
  const auto there = [&made](const char *file) { return writable(made.path + "/" + file); };
  const std::string counted = made.path + "/cgroup.subtree_control";
  const bool counts =
      !unified || write_text(counted, "+pids +memory") || write_text(counted, "+pids");
  made.processes = counts && there("pids.max") && !counts_processes();
  made.memory =
      counts && there(unified ? "memory.max" : "memory.limit_in_bytes") && !counts_memory();
  made.folder = OwnedFd(::open(made.path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (made.folder && (made.processes || made.memory)) {
    hierarchies_.push_back(std::move(made));
  } else {
    ::rmdir(made.path.c_str());
  }
}

bool ServerGroups::counts_processes() const noexcept {
  for (const Hierarchy &hierarchy : hierarchies_) {
    if (hierarchy.processes) return true;
  }
  return false;
}

bool ServerGroups::counts_memory() const noexcept {
  for (const Hierarchy &hierarchy : hierarchies_) {
    if (hierarchy.memory) return true;
  }
  return false;
}

ServerGroups::Group ServerGroups::plan(const Limits &limits) {
  Group group;
  if (hierarchies_.empty()) return group;
  group.name = "server-" + std::to_string(++next_);
  for (const Hierarchy &hierarchy : hierarchies_) {
    Part &part = group.parts.emplace_back();
    part.parent = hierarchy.folder.get();
    part.folder = group.name;
    part.procs = group.name + "/cgroup.procs";
    if (hierarchy.processes && limits.processes != 0) {
      part.processes_file = group.name + "/pids.max";
      part.processes = std::to_string(limits.processes);
    }
    if (hierarchy.memory && limits.memory_bytes != 0) {
      part.memory_file =
          group.name + (hierarchy.unified ? "/memory.max" : "/memory.limit_in_bytes");
      part.memory = std::to_string(limits.memory_bytes);
    }
  }
  return group;
}

void ServerGroups::remove(const std::string &name) {
  if (name.empty()) return;
  ended_.push_back(name);
  std::erase_if(ended_, [this](const std::string &ended) {
    bool gone = true;
    for (const Hierarchy &hierarchy : hierarchies_) {
      const std::string folder = hierarchy.path + "/" + ended;
      if (::rmdir(folder.c_str()) != 0 && errno != ENOENT) gone = false;
    }
    return gone;
  });
}

}  // namespace bulkhead
