#include "sandbox/view_steps.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/owned_fd.hpp"
#include "sandbox/folder_entries.hpp"

namespace bulkhead {
namespace {

using StepKind = ViewStep::Kind;

// Creates a mount target in the server's private folder. Does not follow links, because the server
// can write to that folder.
void make_place(const std::string &own, const std::string &below, bool folder) {
  constexpr int quietly = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  OwnedFd at(::open(own.c_str(), O_PATH | quietly));
  for (std::size_t begin = 1; at && begin < below.size();) {
    const std::size_t end = std::min(below.find('/', begin), below.size());
    const std::string name = below.substr(begin, end - begin);
    if (end == below.size() && !folder) {
      const OwnedFd made(
          ::openat(at.get(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
      return;
    }
    ::mkdirat(at.get(), name.c_str(), 0700);
    at = OwnedFd(::openat(at.get(), name.c_str(), O_PATH | quietly));
    begin = end + 1;
  }
}

// Recognizes entries of a folder that are another spelling of a path with a step, or of a hidden
// path: in a folder that ignores case, ".SSH" is the same file as ".ssh".
class OtherSpellings {
 public:
  OtherSpellings(const std::string &folder, const std::set<std::string> &hidden,
                 const ViewSteps &steps) {
    const std::string start = joined(folder, "");
    for (auto at = hidden.lower_bound(start); at != hidden.end() && at->starts_with(start); ++at) {
      add(*at, start.size());
    }
    for (auto at = steps.lower_bound(start); at != steps.end() && at->first.starts_with(start);
         ++at) {
      add(at->first, start.size());
    }
  }

  bool contain(const std::string &path) const {
    const std::string name(base_of(path));
    const bool ascii =
        std::none_of(name.begin(), name.end(), [](char c) { return (c & 0x80) != 0; });
    if (!names_.contains(folded(name)) && ascii) return false;
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && files_.contains({info.st_dev, info.st_ino});
  }

 private:
  // Adds a path if it is directly in the folder.
  void add(const std::string &path, std::size_t start) {
    struct stat info{};
    if (path.size() == start || path.find('/', start) != std::string::npos) return;
    names_.insert(folded(path.substr(start)));
    if (::lstat(path.c_str(), &info) == 0) files_.insert({info.st_dev, info.st_ino});
  }
  static std::string folded(std::string name) {
    for (char &c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    return name;
  }

  std::set<std::string> names_;
  std::set<std::pair<dev_t, ino_t>> files_;
};

bool hides(const ViewStep &step) {
  return step.kind == StepKind::empty_folder || step.kind == StepKind::empty_file;
}

// Returns true if the server can rename the contents of a folder that this step shows.
bool is_changeable(const ViewStep *step) {
  return step != nullptr && step->kind == StepKind::bind && step->writable && !step->instead;
}

}  // namespace

const ViewStep *nearest_step(const ViewSteps &steps, std::string_view path) {
  for (;;) {
    auto found = steps.upper_bound(path);
    if (found == steps.begin()) return nullptr;
    --found;  // the last step up to the path; every step for a parent of the path is a prefix of it
    const std::string_view key = found->first;
    if (is_within(path, key)) return &found->second;
    if (path == "/") return nullptr;
    const auto differ = std::mismatch(key.begin(), key.end(), path.begin(), path.end()).second;
    std::size_t end = static_cast<std::size_t>(differ - path.begin());
    if (end == path.size() || path[end] != '/') end = path.rfind('/', end == 0 ? 0 : end - 1);
    path = end == 0 || end == std::string_view::npos ? std::string_view("/") : path.substr(0, end);
  }
}

std::set<std::string> folders_to_mirror(const std::vector<std::string> &tops,
                                        const std::set<std::string> &places) {
  std::set<std::string> folders;
  for (const std::string &place : places) {
    const bool in_top = std::any_of(tops.begin(), tops.end(), [&](const std::string &top) {
      return place != top && is_within(place, top);
    });
    for (std::string at = parent_of(place); at != "/"; at = parent_of(at)) {
      if (in_top && folders.contains(at)) break;
      if (!is_folder(at)) continue;
      folders.insert(at);
      if (!in_top || std::find(tops.begin(), tops.end(), at) != tops.end()) break;
    }
  }
  return folders;
}

std::size_t add_entries(const std::string &folder, const std::set<std::string> &hidden,
                        const std::set<std::string> &named_links, ViewSteps *steps) {
  std::size_t count = 0, left_out = 0;
  const OtherSpellings others(folder, hidden, *steps);
  for_each_entry(folder, [&](const auto &found) {
    const std::string path = found.path().string();
    const bool is_hidden = hidden.contains(path) && !named_links.contains(path);
    if (is_hidden || steps->contains(path)) return;
    if (!named_links.contains(path) && others.contain(path)) return;
    if (++count > most_mirrored) {
      ++left_out;
      return;
    }
    std::error_code gone;
    const bool link = found.is_symlink(gone);
    if (!link && found.is_socket(gone)) return;  // a read-only mount can be connected to
    ViewStep &step = (*steps)[path];
    step.kind = link ? StepKind::link : StepKind::entry;
    step.path = path;
    step.source = link ? std::filesystem::read_symlink(path, gone).string() : path;
    step.folder = !link && found.is_directory(gone);
  });
  return left_out;
}

std::string pin_parents(ViewSteps *steps) {
  std::set<std::string> pins;
  for (const auto &[path, step] : *steps) {
    const bool read_only = step.kind == StepKind::bind && !step.writable;
    if (!hides(step) && !read_only && step.kind != StepKind::mirror) continue;
    const ViewStep *granted = nearest_step(*steps, parent_of(path));
    if (!is_changeable(granted)) continue;
    for (std::string at = parent_of(path); at != granted->path && !pins.contains(at);
         at = parent_of(at)) {
      if (pins.size() == ChildView::most_pins) {
        return "more than " + std::to_string(ChildView::most_pins) + " folders in " +
               granted->path +
               " contain paths that are hidden or read-only, or links to credentials lead through "
               "them; name a folder that contains fewer, or remove the links";
      }
      pins.insert(at);
    }
  }
  for (const std::string &path : pins) {
    ViewStep &step = (*steps)[path];
    step = {};
    step.path = step.source = path;
    step.writable = step.pin = step.needed = true;
  }
  return {};
}

void order_steps(ViewSteps *steps, ChildView *view) {
  std::map<std::string, std::size_t> places;  // step indexes in the view, by path
  for (auto &[path, step] : *steps) {
    std::size_t above_at = ViewStep::no_mirror;
    for (std::string at = path; at != "/" && above_at == ViewStep::no_mirror;) {
      at = parent_of(at);
      if (const auto found = places.find(at); found != places.end()) above_at = found->second;
    }
    ViewStep *above = above_at == ViewStep::no_mirror ? nullptr : &view->steps[above_at];
    const bool shown =
        above == nullptr || above->kind == StepKind::bind || above->kind == StepKind::entry;
    if (!shown) {
      if (hides(step)) continue;
      step.make = true;
      if (above->kind == StepKind::empty_folder) above->holds = true;
      if (step.kind == StepKind::entry) step.mirror = above_at;
    }
    if (step.kind == StepKind::bind && !step.writable && is_changeable(above)) step.needed = true;
    if (above != nullptr && above->instead && step.kind == StepKind::bind) {
      make_place(above->source, path.substr(above->path.size()), step.folder);
    }
    places.emplace(path, view->steps.size());
    view->steps.push_back(std::move(step));
  }
}

}  // namespace bulkhead
