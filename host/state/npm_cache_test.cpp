#include "state/npm_cache.hpp"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "common/test_folder.hpp"

namespace bulkhead::program {
namespace {

namespace fs = std::filesystem;

void write(const std::string &path, const std::string &text) {
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path) << text;
}

std::string read(const std::string &path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

// A user's npm cache with one npx installation of "@a/tool", and the cache directory of a server.
struct Caches {
  Caches() { fs::create_directories(server()); }
  std::string user() const { return folder / "npm"; }
  std::string server() const { return folder / "server"; }

  static std::string hex_of(const std::string &content, std::string *integrity) {
    unsigned char bytes[crypto_hash_sha512_BYTES];
    crypto_hash_sha512(bytes, reinterpret_cast<const unsigned char *>(content.data()),
                       content.size());
    char hex[2 * sizeof bytes + 1];
    char base64[sodium_base64_ENCODED_LEN(sizeof bytes, sodium_base64_VARIANT_ORIGINAL)];
    sodium_bin2hex(hex, sizeof hex, bytes, sizeof bytes);
    sodium_bin2base64(base64, sizeof base64, bytes, sizeof bytes, sodium_base64_VARIANT_ORIGINAL);
    *integrity = std::string("sha512-") + base64;
    return hex;
  }
  static std::string place(const std::string &hex) {
    return "/_cacache/content-v2/sha512/" + hex.substr(0, 2) + "/" + hex.substr(2, 2) + "/" +
           hex.substr(4);
  }
  // Adds a package to the lock file and to the cache. `stored` is what the cached file contains; it
  // differs from `content` if the file is damaged.
  std::string add(const std::string &content, const std::string &stored) {
    std::string integrity;
    const std::string at = place(hex_of(content, &integrity));
    write(user() + at, stored);
    lock += std::string(lock.empty() ? "" : ",") + "\"node_modules/p" +
            std::to_string(lock.size()) + "\":{\"integrity\":\"" + integrity + "\"}";
    return at;
  }
  void install(const std::string &package = "@a/tool") const {
    const std::string modules = user() + "/_npx/0123/node_modules/";
    write(modules + package + "/package.json", "{}");
    write(modules + ".package-lock.json", "{\"packages\":{" + lock + "}}");
  }
  NpmCopied copy(const std::string &package = "@a/tool") const {
    return copy_npm_packages(package, user(), server());
  }

  TestFolder folder;
  std::string lock;
};

std::string package_of(const std::string &command, std::vector<std::string> args) {
  ServerDef def;
  def.command = command;
  def.args = std::move(args);
  return npx_package(def);
}

TEST_CASE("npx_package() finds the package in a command line") {
  CHECK(package_of("npx", {"-y", "@a/tool@1.2.3", "/folder"}) == "@a/tool");
  CHECK(package_of("/usr/bin/npx", {"tool"}) == "tool");
  CHECK(package_of("npx", {"-p", "tool@latest", "bin"}) == "tool");
  CHECK(package_of("npx", {"--package=@a/tool", "bin"}) == "@a/tool");
  CHECK(package_of("npx", {}).empty());
  CHECK(package_of("npx", {"-y"}).empty());
  CHECK(package_of("uvx", {"tool"}).empty());
  for (const char *other : {"../../x", "./x", "/x", "git+https://h/x", "a/b", "@a", "@a/..", "@/x",
                            "@a/b/c", "https://h/x.tgz", "."}) {
    INFO(other);
    CHECK(package_of("npx", {other}).empty());
  }
}

TEST_CASE("only content that npx installed for the package is copied, by digest") {
  Caches caches;
  const std::string one = caches.add("first", "first"), two = caches.add("second", "second");
  const std::string forged = caches.add("third", "not the third");
  caches.lock += R"(,"x":{"integrity":"sha1-AAAA"},"y":{"integrity":"sha512-AAAA"},"z":{},"w":[1])";
  caches.install();
  std::string unused;
  write(caches.user() + Caches::place(Caches::hex_of("another's", &unused)), "another's");
  write(caches.user() + "/_cacache/index-v5/aa/bb/cc", "index");
  write(caches.user() + "/_npx/0123/package.json", "{}");
  const NpmCopied copied = caches.copy();
  CHECK(copied.packages == 2);
  CHECK(copied.bytes == 11);
  CHECK(read(caches.server() + "/npm" + one) == "first");
  CHECK(read(caches.server() + "/npm" + two) == "second");
  CHECK_FALSE(fs::exists(caches.server() + "/npm" + forged));
  std::size_t files = 0;
  for (const auto &entry : fs::recursive_directory_iterator(caches.server()))
    files += entry.is_regular_file() ? 1 : 0;
  CHECK(files == 2);
  struct stat about{};
  REQUIRE(::stat((caches.server() + "/npm" + one).c_str(), &about) == 0);
  CHECK((about.st_mode & 0777) == 0600);
  CHECK(caches.copy().packages == 0);  // all files already exist
}

TEST_CASE("nothing is copied if the package is not installed or its lock file is damaged") {
  Caches caches;
  caches.add("first", "first");
  caches.install();
  CHECK(caches.copy("other").packages == 0);
  CHECK(caches.copy("../0123").packages == 0);
  const std::string lock = caches.user() + "/_npx/0123/node_modules/.package-lock.json";
  for (const char *text : {"", "{", "[]", R"({"packages":[]})", R"({"packages":{"a":"b"}})"}) {
    write(lock, text);
    CHECK(caches.copy().packages == 0);
  }
  fs::remove(lock);
  REQUIRE(::mkfifo(lock.c_str(), 0600) == 0);  // reading a FIFO would block
  CHECK(caches.copy().packages == 0);
}

TEST_CASE("links in either cache are not followed") {
  Caches caches;
  const std::string one = caches.add("first", "first");
  caches.install();
  SECTION("a link instead of a content file") {
    write(caches.folder / "elsewhere", "first");
    fs::remove(caches.user() + one);
    fs::create_symlink(caches.folder / "elsewhere", caches.user() + one);
    CHECK(caches.copy().packages == 0);
  }
  SECTION("a directory that the server has replaced with a link") {
    const std::string outside = caches.folder / "outside";
    fs::create_directories(outside);
    const int depth = GENERATE(0, 1, 2);
    const std::string parents[] = {"", "/npm", "/npm/_cacache"};
    const std::string names[] = {"/npm", "/_cacache", "/content-v2"};
    fs::create_directories(caches.server() + parents[depth]);
    fs::create_symlink(outside, caches.server() + parents[depth] + names[depth]);
    CHECK(caches.copy().packages == 0);
    CHECK(fs::is_empty(outside));
  }
}

}  // namespace
}  // namespace bulkhead::program
