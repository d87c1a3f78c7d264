// Tests cache measurement, cache removal, and the cache size limit.
#include "sandbox/cache_bounds.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

using namespace bulkhead;
using namespace std::chrono_literals;

namespace {

namespace fs = std::filesystem;

const std::atomic<bool> never_stop{false};

struct Folder {
  std::string path;
  Folder() {
    char name[] = "/tmp/bulkhead-cache-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { remove_folder(path, never_stop); }
  std::string operator/(const std::string &name) const { return path + "/" + name; }
};

void put_file(const std::string &path, std::size_t bytes) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << std::string(bytes, 'x');
}

// Creates `depth` nested folders. Their path may be longer than PATH_MAX.
void dig(const std::string &top, int depth) {
  fs::create_directories(top);
  int at = ::open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < depth; ++i) {
    REQUIRE(::mkdirat(at, "below-a-name-of-some-length", 0700) == 0);
    const int next =
        ::openat(at, "below-a-name-of-some-length", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(next >= 0);
    ::close(::openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    ::close(at);
    at = next;
  }
  ::close(at);
}

template <class F>
bool becomes_true(F condition) {
  for (int i = 0; i < 2'000 && !condition(); ++i) std::this_thread::sleep_for(10ms);
  return condition();
}

struct World {
  Folder folder;
  std::mutex mutex;
  std::vector<std::string> log;
  std::unique_ptr<CacheBounds> bounds;

  void start() {
    bounds = std::make_unique<CacheBounds>(
        CacheBounds::Options{folder.path,
                             [this](std::int32_t, std::string_view text) {
                               const std::lock_guard lock(mutex);
                               log.emplace_back(text);
                             },
                             0ms, 10ms});
  }
  std::string last_line() {
    const std::lock_guard lock(mutex);
    return log.empty() ? "" : log.back();
  }
  bool marked() const { return fs::exists(folder / ".over-s"); }
  bool trash() const {
    for (const auto &entry : fs::directory_iterator(folder.path)) {
      if (entry.path().filename().string().starts_with(".old-")) return true;
    }
    return false;
  }
};

}  // namespace

TEST_CASE("measure_folder() counts each file once and does not follow links") {
  const Folder folder;
  put_file(folder / "outside", 1 << 20);
  put_file(folder / "cache/a/b/file", 100'000);
  fs::create_symlink(folder / "outside", folder / "cache/link");
  const std::uint64_t one = measure_folder(folder / "cache", never_stop).bytes;
  CHECK(one >= 100'000);
  CHECK(one < 1 << 20);
  fs::create_hard_link(folder / "cache/a/b/file", folder / "cache/same");
  const CacheSize two = measure_folder(folder / "cache", never_stop);
  CHECK(two.bytes < one + 50'000);
  CHECK(two.complete);
  CHECK(measure_folder(folder / "none", never_stop).bytes == 0);
  dig(folder / "deep", most_cache_depth + 1);
  CHECK_FALSE(measure_folder(folder / "deep", never_stop).complete);
}

TEST_CASE("remove_folder() removes deep and unreadable folders, and nothing outside the folder") {
  const Folder folder;
  put_file(folder / "outside/file", 10);
  dig(folder / "cache/deep", 3000);
  put_file(folder / "cache/closed/in/file", 10);
  fs::create_directory_symlink(folder / "outside", folder / "cache/link");
  fs::create_directory_symlink(folder / "outside", folder / "cache/closed/link");
  ::chmod((folder / "cache/closed/in").c_str(), 0);
  ::chmod((folder / "cache/closed").c_str(), 0500);
  CHECK(remove_folder(folder / "cache", never_stop));
  CHECK_FALSE(fs::exists(folder / "cache"));
  CHECK(fs::exists(folder / "outside/file"));
  CHECK(remove_folder(folder / "cache", never_stop));  // a nonexistent folder counts as removed
}

TEST_CASE("remove_folder() ends although a process still writes to the folder") {
  const Folder folder;
  for (int i = 0; i < 100; ++i) put_file(folder / ("cache/" + std::to_string(i)), 0);
  for (int i = 0; i < 100; ++i) put_file(folder / ("deep/a/b/" + std::to_string(i)), 0);
  dig(folder / "chain", 50);
  const auto left_in = [&](const std::string &name) {
    return std::distance(fs::recursive_directory_iterator(folder / name), {});
  };
  CHECK_FALSE(remove_folder(folder / "cache", never_stop, {30, 100}));
  CHECK(left_in("cache") == 70);
  CHECK_FALSE(remove_folder(folder / "deep", never_stop, {30, 100}));
  CHECK(left_in("deep") >= 70);
  CHECK_FALSE(remove_folder(folder / "chain", never_stop, {1'000, 5}));
  for (const char *name : {"cache", "deep", "chain"})
    CHECK(remove_folder(folder / name, never_stop));
  // The writer creates entries continuously, so the removal might not end without the limits.
  fs::create_directories(folder / "used");
  const int used = ::open((folder / "used").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::uint64_t i = 0; !done; ++i) {
      ::close(::openat(used, std::to_string(i).c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    }
  });
  static_cast<void>(remove_folder(folder / "used", never_stop, {1'000, 1'000}));
  done = true;
  writer.join();
  ::close(used);
}

TEST_CASE("a cache above its limit is emptied before its server's next start") {
  World w;
  w.start();
  put_file(w.folder / "s/file", 2 << 20);
  put_file(w.folder / "other/file", 2 << 20);
  w.bounds->make_room("s");
  w.bounds->started("s", 1 << 20);
  w.bounds->started("other", 0);
  w.bounds->started("third", 1 << 20);
  REQUIRE(becomes_true([&] { return w.marked(); }));
  REQUIRE(becomes_true([&] { return !w.last_line().empty(); }));
  CHECK(w.last_line() ==
        "server \"s\": its cache has 2 MiB, more than its cache_bytes (1 MiB); the cache is "
        "emptied before the server's next start");
  w.bounds->make_room("s");  // a second process of the server starts while the first is running
  CHECK(fs::exists(w.folder / "s/file"));
  w.bounds->ended("s");
  w.bounds->make_room("s");
  CHECK_FALSE(fs::exists(w.folder / "s"));
  CHECK_FALSE(w.marked());
  CHECK(becomes_true([&] { return !w.trash(); }));
  CHECK(fs::exists(w.folder / "other/file"));
  CHECK(w.log.size() == 2);
}

TEST_CASE("a cache moved aside during its measurement is not marked") {
  World w;
  w.start();
  for (int round = 0; round < 5; ++round) {
    put_file(w.folder / "s/large", 2 << 20);
    for (int i = 0; i < 10'000; ++i) std::ofstream(w.folder / ("s/" + std::to_string(i)));
    w.bounds->started("s", 1 << 20);
    REQUIRE(becomes_true([&] { return w.marked(); }));
    w.bounds->ended("s");  // starts a measurement that outlasts the next two lines
    w.bounds->make_room("s");
    REQUIRE_FALSE(fs::exists(w.folder / "s"));
    // The cache is removed after the measurement.
    REQUIRE(becomes_true([&] { return !w.trash(); }));
    CHECK_FALSE(w.marked());
  }
}

TEST_CASE("the next process handles marks and caches that were not removed") {
  World w;
  w.start();
  put_file(w.folder / "s/file", 2 << 20);
  put_file(w.folder / ".old-1-1/left/file", 10);
  w.bounds->started("s", 1 << 20);
  REQUIRE(becomes_true([&] { return w.marked() && !w.trash(); }));
  w.bounds.reset();
  w.start();
  w.bounds->make_room("s");
  CHECK_FALSE(fs::exists(w.folder / "s"));
}

TEST_CASE("a cache that is within its limit again is kept") {
  World w;
  w.start();
  put_file(w.folder / "s/file", 2 << 20);
  put_file(w.folder / "s/kept", 10);
  w.bounds->started("s", 1 << 20);
  REQUIRE(becomes_true([&] { return w.marked(); }));
  fs::remove(w.folder / "s/file");
  REQUIRE(becomes_true([&] { return !w.marked(); }));
  w.bounds->ended("s");
  w.bounds->make_room("s");
  CHECK(fs::exists(w.folder / "s/kept"));
}
