#include "common/trusted_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "common/test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

struct Setting {
  Setting() {
    ::mkdir((folder / "etc").c_str(), 0755);
    std::ofstream(file) << "text";
    ::chmod(file.c_str(), 0644);
  }
  Result<std::string> read(std::size_t most = 100) const {
    return read_trusted(file, {0, ::geteuid()}, most);
  }
  std::string why() const {
    auto text = read();
    return text ? "read" : text.error().text;
  }
  TestFolder folder;
  const std::string file = folder / "etc/corp.toml";
};

bool has(const std::string &text, std::string_view part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a file that is writable only by its owner is read completely") {
  Setting s;
  CHECK(s.read() == "text");
  CHECK(s.read(4) == "text");
  CHECK(s.read(3).error().code == BH_E_LIMIT);
  ::unlink(s.file.c_str());
  CHECK(s.read().error().code == BH_E_NOT_FOUND);
}

TEST_CASE("a file that is writable by others is rejected") {
  Setting s;
  for (const mode_t mode : {0664u, 0646u}) {
    ::chmod(s.file.c_str(), mode);
    CHECK(s.read().error().code == BH_E_DENIED);
    CHECK(has(s.why(), s.file + ": is writable by users other than its owner"));
  }
  ::chmod(s.file.c_str(), 0644);
  // A file in a directory that others can write to is also rejected ...
  ::chmod((s.folder / "etc").c_str(), 0777);
  CHECK(has(s.why(), s.folder / "etc: is writable by users other than its owner"));
  ::chmod((s.folder / "etc").c_str(), 01777);  // ... unless the sticky bit is set
  CHECK(s.why() == "read");
  ::chmod((s.folder / "etc").c_str(), 0755);
  const auto other = read_trusted(s.file, {::geteuid() + 1}, 100);
  CHECK(other.error().code == BH_E_DENIED);
  CHECK(has(other.error().text, "is owned by user"));
}

TEST_CASE("links and special files are rejected") {
  Setting s;
  REQUIRE(::symlink(s.file.c_str(), (s.folder / "link").c_str()) == 0);
  REQUIRE(::symlink((s.folder / "etc").c_str(), (s.folder / "way").c_str()) == 0);
  const std::vector<uid_t> owners{0, ::geteuid()};
  for (const std::string name : {"link", "way/corp.toml"}) {
    const auto text = read_trusted(s.folder / name, owners, 100);
    REQUIRE_FALSE(text.has_value());
    CHECK(text.error().code == BH_E_DENIED);
    CHECK(has(text.error().text, "is a symbolic link"));
  }
  CHECK(read_trusted(s.folder / "etc", owners, 100).error().code == BH_E_DENIED);
  REQUIRE(::mkfifo((s.folder / "pipe").c_str(), 0644) == 0);
  CHECK(read_trusted(s.folder / "pipe", owners, 100).error().code == BH_E_DENIED);
  CHECK(read_trusted(s.folder / "etc/../etc/corp.toml", owners, 100).error().code == BH_E_INVALID);
  CHECK(read_trusted("corp.toml", owners, 100).error().code == BH_E_INVALID);
}
