// Creates a temporary directory for one test and removes it afterwards.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

namespace bulkhead::program {

struct TestFolder {
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "bulkhead-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path = name;
  }
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TestFolder(const TestFolder &) = delete;
  TestFolder &operator=(const TestFolder &) = delete;

  std::string operator/(const std::string &name) const { return path + "/" + name; }
  std::string path;
};

}  // namespace bulkhead::program
