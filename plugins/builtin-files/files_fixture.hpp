// Test fixture: starts the plugin with a temporary workspace. Tests check that a secret file next
// to the workspace is inaccessible.
#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "tool-kit/testing.hpp"

extern "C" const bh_entry *bh_static_entry_BuiltinFiles(void);

namespace builtin_files::testing {

namespace fs = std::filesystem;

class Tree {
 public:
  Tree() {
    std::string name = (fs::temp_directory_path() / "bulkhead-files-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp");
    base_ = name;
    fs::create_directory(root());
    write(base_ / "secret.txt", "do not read\n");
  }
  ~Tree() { fs::remove_all(base_); }
  Tree(const Tree &) = delete;
  Tree &operator=(const Tree &) = delete;

  fs::path root() const { return base_ / "root"; }
  fs::path outside() const { return base_; }
  void file(const std::string &path, std::string_view content) {
    fs::create_directories((root() / path).parent_path());
    write(root() / path, content);
  }
  std::string read(const std::string &path) const {
    std::ostringstream out;
    out << std::ifstream(root() / path, std::ios::binary).rdbuf();
    return out.str();
  }
  // Returns a configuration that permits writing. `more` contains additional members, each preceded
  // by a comma.
  std::string writable(const std::string &more = "") const {
    return R"({"path":")" + root().string() + "\",\"write\":true" + more + "}";
  }
  std::string config() const { return R"({"path":")" + root().string() + "\"}"; }

 private:
  static void write(const fs::path &path, std::string_view content) {
    std::ofstream(path, std::ios::binary) << content;
  }
  fs::path base_;
};

class Files : public tool_kit::testing::ToolsHost {
 public:
  explicit Files(const Tree &tree) : Files(tree.config()) {}
  explicit Files(const std::string &config)
      : ToolsHost(bh_static_entry_BuiltinFiles(), "builtin-files", config) {}
};

}  // namespace builtin_files::testing
