#include "common/logger.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/test_folder.hpp"
#include "plugin/secrets.hpp"
#include "sources/profile_source.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

std::string content(const std::string &path) {
  std::ifstream file(path);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

mode_t mode_of(const std::string &path) {
  struct stat info{};
  REQUIRE(::lstat(path.c_str(), &info) == 0);
  return info.st_mode & 0777;
}

}  // namespace

TEST_CASE("each log entry is one line, even if the server's text has several lines") {
  TestFolder folder;
  Logger logger(LogLevel::info, LogLevel::error);
  REQUIRE(logger.open(folder / "a.log"));
  logger.log(LogLevel::info, "fake", "one\nfaked line\033[0m");
  logger.log(LogLevel::debug, "fake", "not this");
  logger.log(LogLevel::warn, "fake", std::string(Logger::max_line_bytes + 5, 'x'));
  const std::string text = content(folder / "a.log");
  CHECK(text.find(" info fake: one?faked line?[0m\n") != std::string::npos);
  CHECK(text.find("not this") == std::string::npos);
  CHECK(text.find("x [cut]\n") != std::string::npos);
  CHECK(mode_of(folder / "a.log") == 0600);
}

TEST_CASE("the log is rotated and limited") {
  TestFolder folder;
  const std::string path = folder / "a.log";
  Logger logger(LogLevel::info, LogLevel::error);
  Logger other(LogLevel::info, LogLevel::error);  // a second gateway with the same log file
  REQUIRE(logger.open(path));
  REQUIRE(other.open(path));
  const std::string line(8000, 'x');
  for (int i = 0; i < 700; ++i) (i % 2 == 0 ? logger : other).log(LogLevel::info, "c", line);
  std::uintmax_t total = 0;
  for (const auto &entry : std::filesystem::directory_iterator(folder.path)) {
    CHECK(entry.file_size() < Logger::max_file_bytes + 2 * 8100);
    total += entry.file_size();
  }
  CHECK(std::filesystem::exists(path + ".2"));
  CHECK_FALSE(std::filesystem::exists(path + ".3"));
  CHECK(total > Logger::max_file_bytes);
}

namespace {

// Returns what `f` writes to standard error.
template <class F>
std::string standard_error_of(F f) {
  TestFolder folder;
  const int saved = ::dup(STDERR_FILENO);
  const int file = ::open((folder / "err").c_str(), O_RDWR | O_CREAT, 0600);
  ::dup2(file, STDERR_FILENO);
  f();
  ::dup2(saved, STDERR_FILENO);
  ::close(saved);
  ::close(file);
  return content(folder / "err");
}

}  // namespace

TEST_CASE("repeated lines are shown once on standard error") {
  TestFolder folder;
  Logger logger(LogLevel::info, LogLevel::warn);
  REQUIRE(logger.open(folder / "a.log"));
  const std::string shown = standard_error_of([&] {
    for (int i = 0; i < 3; ++i) logger.log(LogLevel::warn, "router", "x is down");
    logger.log(LogLevel::info, "router", "not for people");
    logger.log_to_file(LogLevel::warn, "router", "y is in the table");
    logger.log(LogLevel::warn, "router", "y is in the table");
    logger.log(LogLevel::error, "router", "z");
  });
  CHECK(shown == "bulkhead: router: x is down\nbulkhead: error: router: z\n");
  const std::string file = content(folder / "a.log");
  const auto count = [&](std::string_view text) {
    std::size_t n = 0;
    for (std::size_t at = file.find(text); at != std::string::npos; at = file.find(text, at + 1))
      ++n;
    return n;
  };
  CHECK(count("x is down") == 3);
  CHECK(count("y is in the table") == 2);
}

TEST_CASE("held lines are written at release, up to the limit") {
  Logger logger(LogLevel::info, LogLevel::info);
  const std::string shown = standard_error_of([&] {
    logger.hold();
    logger.log(LogLevel::warn, "a", "first");
    for (int i = 0; i < 100; ++i) logger.log(LogLevel::warn, "a", std::string(4000, 'x'));
    Console::get().write("banner\n");
    logger.release();
    logger.log(LogLevel::warn, "a", "last");
  });
  CHECK(shown.starts_with("banner\nbulkhead: a: first\n"));
  CHECK(shown.ends_with("bulkhead: a: last\n"));
  CHECK(shown.size() < Logger::max_held_bytes + 200);
  CHECK(shown.size() > Logger::max_held_bytes / 2);
}

TEST_CASE("if a pipe is full, lines are lost and nothing blocks") {
  TestFolder folder;
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const int saved = ::dup(STDERR_FILENO);
  ::dup2(ends[1], STDERR_FILENO);
  Logger logger(LogLevel::info, LogLevel::info);
  const bool opened = logger.open(folder / "a.log").has_value();
  for (int i = 0; i < 500; ++i) logger.log(LogLevel::warn, "a", std::string(1000, 'x'));
  ::dup2(saved, STDERR_FILENO);
  for (const int fd : {saved, ends[0], ends[1]}) ::close(fd);
  REQUIRE(opened);
  CHECK(content(folder / "a.log").size() > 500'000);
}

TEST_CASE("launchers that first download servers have a longer connect timeout") {
  CHECK(downloads_first("npx"));
  CHECK(downloads_first("/usr/bin/docker"));
  CHECK_FALSE(downloads_first("node"));
  CHECK_FALSE(downloads_first("/opt/npx/server"));
  CHECK_FALSE(downloads_first(""));
}

TEST_CASE("a log file that is a symbolic link is rejected") {
  TestFolder folder;
  std::filesystem::create_symlink("elsewhere", folder / "a.log");
  Logger logger(LogLevel::info, LogLevel::error);
  CHECK_FALSE(logger.open(folder / "a.log"));
}

TEST_CASE("make_private_dir() creates directories with mode 0700") {
  TestFolder folder;
  REQUIRE(make_private_dir(folder / "a/b/c"));
  CHECK(mode_of(folder / "a/b/c") == 0700);
  ::chmod((folder / "a/b/c").c_str(), 0777);
  REQUIRE(make_private_dir(folder / "a/b/c"));
  CHECK(mode_of(folder / "a/b/c") == 0700);
  std::filesystem::create_directory_symlink(folder / "a/b", folder / "link");
  CHECK_FALSE(make_private_dir(folder / "link"));
  std::ofstream(folder / "file") << "x";
  CHECK_FALSE(make_private_dir(folder / "file"));
  CHECK_FALSE(make_private_dir(folder / "file/below"));
}

TEST_CASE("the number of secrets per instance is limited") {
  TestFolder folder;
  const auto mine = bulkhead::private_folder(folder / "state", "secrets", "one");
  REQUIRE(mine.has_value());
  for (std::size_t i = 0; i < bulkhead::max_secrets; ++i) {
    REQUIRE(bulkhead::write_secret(*mine, "n" + std::to_string(i), "v").has_value());
  }
  const auto refused = bulkhead::write_secret(*mine, "another", "v");
  REQUIRE(!refused.has_value());
  CHECK(refused.error().code == BH_E_LIMIT);
  CHECK(bulkhead::write_secret(*mine, "n0", "w").has_value());
  CHECK(bulkhead::write_secret(*mine, "n1", "").has_value());
  CHECK(bulkhead::write_secret(*mine, "another", "v").has_value());
}
