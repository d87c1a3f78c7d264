// A temporary folder for a test case, with copies of test plugins.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace bulkhead::testing {

class TestFolder {
 public:
  TestFolder() {
    std::string name = std::filesystem::temp_directory_path() / "bulkhead-plugin-XXXXXX";
    path_ = ::mkdtemp(name.data());
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;

  const std::string &path() const { return path_; }
  std::string operator/(const std::string &name) const { return path_ + "/" + name; }

  void copy(const std::string &plugin) {
    for (const char *end : {".so", ".plugin.toml"}) {
      std::filesystem::copy(std::string(TEST_PLUGINS) + "/" + plugin + end, *this / (plugin + end));
    }
  }
  void write(const std::string &name, const std::string &text) {
    std::ofstream(*this / name, std::ios::binary) << text;
  }

 private:
  std::string path_;
};

}  // namespace bulkhead::testing
