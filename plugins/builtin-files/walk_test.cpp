// Tests that cancellation and limits stop a walk while it reads a folder.
#include "builtin-files/walk.hpp"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>

namespace fs = std::filesystem;

namespace {

int entries_read = 0;
std::atomic<bool> cancelled = false;
constexpr int cancelled_at = 100;
int generated = 0;  // number of generated entries that readdir() still has to return

}  // namespace

// Replaces the C library's readdir(). Counts the calls and cancels the tool call when the count
// reaches cancelled_at.
extern "C" dirent *readdir(DIR *dir) {
  using Function = dirent *(*)(DIR *);
  static const auto next = reinterpret_cast<Function>(::dlsym(RTLD_NEXT, "readdir"));
  static dirent entry;
  if (generated > 0) {
    entry.d_type = DT_REG;
    std::snprintf(entry.d_name, sizeof entry.d_name, "%d", generated--);
    return &entry;
  }
  if (++entries_read == cancelled_at) cancelled = true;
  return next(dir);
}

TEST_CASE("a cancelled walk stops before it has read the whole folder") {
  std::string name = (fs::temp_directory_path() / "bulkhead-walk-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  for (int i = 0; i < 1000; ++i) std::ofstream(fs::path(name) / std::to_string(i)).put('x');
  const std::vector<builtin_files::Workspace> none;
  tool_kit::Arguments arguments("{}");
  const builtin_files::Call call{none, arguments, cancelled, 0};
  builtin_files::Fd folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  entries_read = 0;
  cancelled = false;
  int visited = 0;
  const std::string why =
      builtin_files::walk(call, std::move(folder), "", [&](const builtin_files::Found &) {
        ++visited;
        return true;
      });
  const int read = entries_read;
  fs::remove_all(name);
  CHECK(why == "the call was cancelled");
  CHECK(visited == 0);
  CHECK(read < 200);
}

TEST_CASE("a walk that does not read all entries of a folder is incomplete") {
  std::string name = (fs::temp_directory_path() / "bulkhead-walk-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  const std::vector<builtin_files::Workspace> none;
  tool_kit::Arguments arguments("{}");
  entries_read = cancelled_at;
  cancelled = false;
  const builtin_files::Call call{none, arguments, cancelled, 0};
  const auto visit = [&](int entries) {
    builtin_files::Fd folder(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    generated = entries;
    int visited = 0;
    const std::string why =
        builtin_files::walk(call, std::move(folder), "", [&](const builtin_files::Found &) {
          ++visited;
          return true;
        });
    generated = 0;
    CHECK(visited == 200'000);
    return why;
  };
  CHECK(visit(200'000).empty());
  CHECK(visit(200'001) == "some folders have too many files");
  fs::remove_all(name);
}
