// Shared by the tests of planned views: a home directory in a temporary folder, and what a view
// makes visible in it.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "sandbox/child_view.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead {

namespace fs = std::filesystem;
using Kind = ViewStep::Kind;
using Mode = ChildPolicy::Mode;

// A home directory in a temporary folder outside /tmp, if possible, because /tmp is not visible in
// a sandbox.
struct Place {
  std::string folder, home;
  ChildPolicy policy;
  ViewRequest request;
  ChildView view;

  Place() {
    std::string name = "/var/bulkhead-view-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) {
      name = "/tmp/bulkhead-view-XXXXXX";
      REQUIRE(::mkdtemp(name.data()) != nullptr);
    }
    folder = real_path(name);
    home = folder + "/home";
    file(".ssh/id_rsa");
    file(".aws/credentials");
    file("notes.txt");
    policy.command = "server";
    request.policy = &policy;
    request.program = "/bin/sh";
    request.home = home;
    request.user = ::geteuid();
  }
  ~Place() {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
  }
  Place(const Place &) = delete;
  Place &operator=(const Place &) = delete;

  std::string at(const std::string &name) const { return name.empty() ? home : home + "/" + name; }
  std::string file(const std::string &name) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    std::ofstream(at(name)) << "text";
    return at(name);
  }
  std::string link(const std::string &name, const std::string &target) const {
    fs::create_directories(fs::path(at(name)).parent_path());
    fs::remove_all(at(name));
    fs::create_symlink(target, at(name));
    return at(name);
  }

  Place &plan() {
    view = plan_view(request);
    return *this;
  }
  std::optional<Kind> kind(const std::string &path) const {
    for (const ViewStep &step : view.steps)
      if (step.path == path) return step.kind;
    return std::nullopt;
  }
  bool grants(const std::string &path, bool writable = true) const {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.kind == Kind::bind && step.path == path && step.writable == writable;
    });
  }
  // Returns true if a grant makes the path or a part of it accessible.
  bool reaches(const std::string &path) const {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.kind == Kind::bind && !step.instead &&
             (is_within(path, step.path) || is_within(step.path, path) ||
              is_within(path, step.source) || is_within(step.source, path));
    });
  }
  // Returns true if a step for the path, or for a path in it, does more than hide that path.
  bool shows(const std::string &path) const {
    return std::any_of(view.steps.begin(), view.steps.end(), [&](const ViewStep &step) {
      return step.kind != Kind::empty_folder && step.kind != Kind::empty_file &&
             is_within(step.path, path);
    });
  }
  bool notes(const std::string &start) const {
    return std::any_of(view.notes.begin(), view.notes.end(),
                       [&](const std::string &line) { return line.starts_with(start); });
  }
  bool reports(const std::string &start) const {
    return std::any_of(view.ignored.begin(), view.ignored.end(),
                       [&](const std::string &line) { return line.starts_with(start); });
  }
};

}  // namespace bulkhead
