#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "telemetry-sqlite/spill.hpp"
#include "telemetry-sqlite/testing.hpp"

using namespace telemetry_sqlite;
using telemetry_sqlite::testing::Folder;
using telemetry_sqlite::testing::row;

namespace {

constexpr std::uint64_t bytes = 65'536;

std::vector<std::uint64_t> numbers(Spill &spill, std::size_t n) {
  std::vector<std::uint64_t> out;
  for (const Row &one : spill.peek(n)) out.push_back(one.number);
  return out;
}

}  // namespace

TEST_CASE("spilled rows are returned unchanged, oldest first, until taken() removes them") {
  Folder folder;
  Spill spill;
  REQUIRE(spill.open(folder / "s", bytes).empty());
  CHECK(spill.empty());
  for (std::uint64_t i = 1; i <= 5; ++i) REQUIRE(spill.put(row(i)));
  CHECK_FALSE(spill.empty());
  CHECK(numbers(spill, 3) == std::vector<std::uint64_t>{1, 2, 3});
  // Until taken() is called, the same rows are returned.
  CHECK(numbers(spill, 3) == std::vector<std::uint64_t>{1, 2, 3});
  spill.taken();
  const auto rest = spill.peek(9);
  REQUIRE(rest.size() == 2);
  CHECK(rest[0].request == row(4).request);
  CHECK(rest[1].start_unix_ns == row(5).start_unix_ns);
  spill.taken();
  CHECK(spill.empty());
}

TEST_CASE("rows from versions without claimed_name or revisions can be read") {
  // The body ends with claimed_name, which is empty here, and the two revisions.
  const std::uint32_t missing = GENERATE(8u, 12u);
  Folder folder;
  const std::string path = folder / "s";
  {
    Spill spill;
    REQUIRE(spill.open(path, bytes).empty());
    Row named = row(1);
    named.claimed_name = "Claude Code";
    named.client_revision = 20250618;
    named.server_revision = 20260728;
    REQUIRE(spill.put(named));
    CHECK(spill.peek(1).at(0).claimed_name == "Claude Code");
    CHECK(spill.peek(1).at(0).client_revision == 20250618);
    CHECK(spill.peek(1).at(0).server_revision == 20260728);
    spill.taken();
    REQUIRE(spill.put(row(2)));
  }
  // The row has a length, a checksum and a body.
  constexpr std::size_t at = 24, sum_at = at + 4, body_at = sum_at + crypto_shorthash_BYTES;
  std::string text(bytes, '\0');
  const int fd = ::open(path.c_str(), O_RDWR);
  REQUIRE(::pread(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  std::uint32_t size = 0;
  std::memcpy(&size, &text[at], sizeof size);
  size -= missing;
  std::memcpy(&text[at], &size, sizeof size);
  constexpr unsigned char key[crypto_shorthash_KEYBYTES] = {'s', 'p', 'i', 'l', 'l'};
  crypto_shorthash(reinterpret_cast<unsigned char *>(&text[sum_at]),
                   reinterpret_cast<const unsigned char *>(&text[body_at]), size, key);
  REQUIRE(::pwrite(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  ::close(fd);
  Spill spill;
  REQUIRE(spill.open(path, bytes).empty());
  const auto rows = spill.peek(2);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].number == 2);
  CHECK(rows[0].response == row(2).response);
  CHECK(rows[0].claimed_name == "");
  CHECK(rows[0].client_revision == 0);
  CHECK(rows[0].server_revision == 0);
}

TEST_CASE("blocks are reserved in advance, and rows that do not fit are rejected") {
  Folder folder;
  Spill spill;
  REQUIRE(spill.open(folder / "s", bytes).empty());
  struct stat status{};
  REQUIRE(::stat((folder / "s").c_str(), &status) == 0);
  CHECK(status.st_size == static_cast<off_t>(bytes));
  CHECK(status.st_blocks * 512 >= static_cast<off_t>(bytes));
  std::uint64_t n = 0;
  while (spill.put(row(n))) ++n;
  CHECK(n > 100);
  CHECK(numbers(spill, 10'000).size() == n);
  REQUIRE(::stat((folder / "s").c_str(), &status) == 0);
  CHECK(status.st_size == static_cast<off_t>(bytes));
}

TEST_CASE("the next process reads the rows of the previous process") {
  Folder folder;
  {
    Spill spill;
    REQUIRE(spill.open(folder / "s", bytes).empty());
    for (std::uint64_t i = 1; i <= 4; ++i) spill.put(row(i));
    spill.peek(1);
    spill.taken();
  }
  Spill spill;
  REQUIRE(spill.open(folder / "s", bytes).empty());
  CHECK(numbers(spill, 9) == std::vector<std::uint64_t>{2, 3, 4});
  SECTION("a truncated row is skipped") {
    const int fd = ::open((folder / "s").c_str(), O_WRONLY);
    REQUIRE(::pwrite(fd, "xxxx", 4, 500) == 4);
    ::close(fd);
    Spill again;
    REQUIRE(again.open(folder / "s", bytes).empty());
    CHECK(numbers(again, 9).size() < 3);
  }
}

TEST_CASE("an oversized spill file is truncated when it is empty, and no row is lost") {
  Folder folder;
  std::uint64_t n = 0;
  {
    Spill spill;
    REQUIRE(spill.open(folder / "s", 2 * bytes).empty());
    while (spill.put(row(n))) ++n;
    spill.set_lost(7);
  }
  Spill spill;
  REQUIRE(spill.open(folder / "s", bytes).empty());
  CHECK(spill.lost() == 7);
  CHECK(numbers(spill, 10'000).size() == n);
  spill.taken();
  CHECK(spill.empty());
  struct stat status{};
  REQUIRE(::stat((folder / "s").c_str(), &status) == 0);
  CHECK(status.st_size == static_cast<off_t>(bytes));
  while (spill.put(row(n))) ++n;
  REQUIRE(::stat((folder / "s").c_str(), &status) == 0);
  CHECK(status.st_size == static_cast<off_t>(bytes));
}

TEST_CASE("a file in another format is replaced, and an unusable path is reported") {
  Folder folder;
  const int fd = ::open((folder / "s").c_str(), O_WRONLY | O_CREAT, 0600);
  REQUIRE(::write(fd, "something else entirely", 23) == 23);
  ::close(fd);
  Spill spill;
  REQUIRE(spill.open(folder / "s", bytes).empty());
  CHECK(spill.empty());
  Spill nowhere;
  CHECK_FALSE(nowhere.open(folder / "no/such", bytes).empty());
}
