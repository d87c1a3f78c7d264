#include "plugin/loader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "plugin/plugin_file.hpp"
#include "plugin/test_folder.hpp"

namespace bulkhead {
namespace {

using Catch::Contains;

LoadOptions from(const std::string &dir) {
  LoadOptions options;
  options.dirs = {dir};
  return options;
}

// Calls load(), which must fail, and returns its error.
Error refusal(const std::string &plugin, const LoadOptions &options) {
  auto library = Library::load(plugin, nullptr, options);
  REQUIRE_FALSE(library.has_value());
  return library.error();
}
Error refusal(const std::string &plugin) {
  return refusal(plugin, from(TEST_PLUGINS));
}

std::string digest(const std::string &path) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return sha256_of(fd.get()).value();
}

// Formats an ABI version with this host's major version.
std::string version(unsigned minor) {
  return std::to_string(BH_ABI_MAJOR) + "." + std::to_string(minor);
}

std::size_t open_descriptors() {
  std::size_t n = 0;
  for ([[maybe_unused]] const auto &e : std::filesystem::directory_iterator("/proc/self/fd")) ++n;
  return n;
}

TEST_CASE("a plugin is found by name and by path") {
  const std::string path = std::string(TEST_PLUGINS) + "/good.so";
  for (const std::string &plugin : {std::string("good"), path}) {
    auto library = Library::load(plugin, nullptr, from(TEST_PLUGINS));
    if (!library) FAIL(library.error().text);
    CHECK((*library)->path() == path);
    CHECK((*library)->manifest().id == "good");
    CHECK((*library)->manifest().version == "1.2.3");
    CHECK((*library)->manifest().provides == std::vector<std::string>{"bh.tools/1"});
    CHECK((*library)->description().name == "For tests");
    CHECK((*library)->entry().count == 1);
  }
}

TEST_CASE("the checked file is mapped, even if its path no longer exists") {
  testing::TestFolder folder;
  folder.copy("good");
  auto checked = Library::check("good", from(folder.path()));
  REQUIRE(checked.has_value());
  CHECK(checked->manifest.id == "good");
  CHECK(checked->path == folder / "good.so");
  CHECK(checked->fd() >= 0);
  std::filesystem::remove(folder / "good.so");
  std::filesystem::remove(folder / "good.plugin.toml");
  auto library = Library::load(std::move(*checked), nullptr, {});
  if (!library) FAIL(library.error().text);
  CHECK((*library)->path() == folder / "good.so");
  CHECK((*library)->manifest().version == "1.2.3");
}

TEST_CASE("checking runs no code of the plugin, so even a plugin that hangs passes") {
  CHECK(Library::check("hangs-in-constructor", from(TEST_PLUGINS)).has_value());
  const auto other = Library::check("other-entry", from(TEST_PLUGINS));
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().code == BH_E_ABI);
}

TEST_CASE("the first folder that has the file is used, and missing folders are skipped") {
  testing::TestFolder folder;
  folder.copy("good");
  LoadOptions options;
  options.dirs = {folder / "none", folder.path(), TEST_PLUGINS};
  auto library = Library::load("good", nullptr, options);
  REQUIRE(library.has_value());
  CHECK((*library)->path() == folder / "good.so");
}

TEST_CASE("the error for a missing plugin lists the searched folders") {
  const Error error = refusal("absent");
  CHECK(error.code == BH_E_NOT_FOUND);
  CHECK_THAT(error.text, Contains("absent.so") && Contains(TEST_PLUGINS));
  CHECK(refusal("/nowhere/absent.so").code == BH_E_NOT_FOUND);
  CHECK(refusal("../good").code == BH_E_INVALID);
  CHECK(refusal("Good").code == BH_E_INVALID);
}

TEST_CASE("the error for an incompatible ABI contains both versions and the remedy") {
  Error error = refusal("wrong-major");
  CHECK(error.code == BH_E_ABI);
  CHECK_THAT(error.text, Contains("wrong-major") && Contains("ABI 9") &&
                             Contains(version(BH_ABI_MINOR)) &&
                             Contains("rebuild the plugin with the SDK of this Bulkhead"));
  error = refusal("needs-newer");
  CHECK(error.code == BH_E_ABI);
  CHECK_THAT(error.text, Contains("requires plugin ABI " + version(BH_ABI_MINOR + 1)) &&
                             Contains("offers " + version(BH_ABI_MINOR)));
  error = refusal("other-entry");
  CHECK(error.code == BH_E_ABI);
  CHECK_THAT(error.text, Contains("bh_plugin_entry_v7"));
  error = refusal("other-candidate");
  CHECK(error.code == BH_E_ABI);
  CHECK_THAT(
      error.text,
      Contains("built for plugin ABI " + abi_version(BH_ABI_MAJOR, BH_ABI_MINOR, BH_ABI_RC + 1)) &&
          Contains("uses " + abi_version(BH_ABI_MAJOR, BH_ABI_MINOR, BH_ABI_RC)) &&
          Contains("rebuild the plugin with the SDK of this Bulkhead"));
}

TEST_CASE("a plugin with an incompatible ABI is rejected by its manifest alone") {
  testing::TestFolder folder;
  folder.copy("hangs-in-init");  // the code of this plugin must not run
  folder.write("hangs-in-init.plugin.toml",
               "id = \"hangs-in-init\"\nabi_major = 3\nabi_minor_needed = 0\n"
               "provides = [\"bh.tools/1\"]\n");
  const Error error = refusal("hangs-in-init", from(folder.path()));
  CHECK(error.code == BH_E_ABI);
  CHECK_THAT(error.text, Contains("ABI 3"));
}

TEST_CASE("a library that exports two major versions is loaded through the host's version") {
  CHECK(Library::load("two-entries", nullptr, from(TEST_PLUGINS)).has_value());
}

TEST_CASE("a library that is not a plugin is rejected") {
  testing::TestFolder folder;
  folder.copy("good");
  std::filesystem::rename(folder / "good.so", folder / "kept");
  std::filesystem::copy(std::string(TEST_PLUGINS) + "/no-entry.so", folder / "good.so");
  const Error error = refusal("good", from(folder.path()));
  CHECK_THAT(error.text, Contains("good.so") && Contains("bh_plugin_entry_v1"));

  folder.write("text.so",
               "this is not a library, but it is longer than an ELF header is: 64 bytes");
  folder.write("text.plugin.toml",
               "id = \"text\"\nabi_major = 1\nabi_minor_needed = 0\nprovides = [\"bh.tools/1\"]\n");
  const Error text = refusal("text", from(folder.path()));
  CHECK(text.code == BH_E_INVALID);
  CHECK_THAT(text.text, Contains("not a shared library"));
}

TEST_CASE("a library truncated at any position is rejected") {
  testing::TestFolder folder;
  folder.copy("good");
  const auto whole = std::filesystem::file_size(folder / "good.so");
  for (const auto size : {whole - 1, whole / 2, whole / 4, std::uintmax_t{100}, std::uintmax_t{64},
                          std::uintmax_t{10}, std::uintmax_t{0}}) {
    std::filesystem::resize_file(folder / "good.so", size);
    const Error error = refusal("good", from(folder.path()));
    CHECK(error.code == BH_E_INVALID);
    CHECK_THAT(error.text, Contains("good.so"));
  }
}

TEST_CASE("a damaged header is rejected") {
  testing::TestFolder folder;
  folder.copy("good");
  std::fstream file(folder / "good.so", std::ios::in | std::ios::out | std::ios::binary);
  const auto poke = [&](std::streamoff at, std::string_view bytes) {
    file.seekp(at);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.flush();
  };
  poke(40, std::string_view("\xff\xff\xff\xff\xff\xff\xff\x7f", 8));  // e_shoff
  CHECK_THAT(refusal("good", from(folder.path())).text, Contains("damaged"));
  poke(18, std::string_view("\x28\x00", 2));  // e_machine: 32-bit ARM
  CHECK_THAT(refusal("good", from(folder.path())).text, Contains("a different architecture"));
}

TEST_CASE("a file that other users could change is rejected") {
  testing::TestFolder folder;
  folder.copy("good");
  ::chmod((folder / "good.so").c_str(), 0664);
  Error error = refusal("good", from(folder.path()));
  CHECK(error.code == BH_E_DENIED);
  CHECK_THAT(error.text, Contains("chmod go-w") && Contains("good.so"));
  ::chmod((folder / "good.so").c_str(), 0755);
  ::chmod((folder / "good.plugin.toml").c_str(), 0646);
  CHECK(refusal("good", from(folder.path())).code == BH_E_DENIED);
  ::chmod((folder / "good.plugin.toml").c_str(), 0644);
  ::chmod(folder.path().c_str(), 0777);
  error = refusal("good", from(folder.path()));
  CHECK(error.code == BH_E_DENIED);
  CHECK_THAT(error.text, Contains("folder"));
  ::chmod(folder.path().c_str(), 0700);
  CHECK(Library::load("good", nullptr, from(folder.path())).has_value());
}

TEST_CASE("another user's file is rejected") {
  if (::geteuid() != 0) return;  // only root can change a file's owner
  testing::TestFolder folder;
  folder.copy("good");
  REQUIRE(::chown((folder / "good.so").c_str(), 12345, 12345) == 0);
  const Error error = refusal("good", from(folder.path()));
  CHECK(error.code == BH_E_DENIED);
  CHECK_THAT(error.text, Contains("12345"));
}

TEST_CASE("symbolic links and special files are rejected rather than followed or skipped") {
  testing::TestFolder folder;
  LoadOptions options;
  options.dirs = {folder.path(), TEST_PLUGINS};
  std::filesystem::create_symlink(std::string(TEST_PLUGINS) + "/good.so", folder / "good.so");
  Error error = refusal("good", options);
  CHECK(error.code == BH_E_DENIED);
  CHECK_THAT(error.text, Contains("symbolic link"));
  std::filesystem::remove(folder / "good.so");
  REQUIRE(::mkfifo((folder / "good.so").c_str(), 0600) == 0);
  error = refusal("good", options);
  CHECK(error.code == BH_E_DENIED);
  CHECK_THAT(error.text, Contains("not a regular file"));
}

TEST_CASE("a manifest that is missing, unreadable or belongs to another plugin is rejected") {
  testing::TestFolder folder;
  folder.copy("good");
  const std::string manifest = "good.plugin.toml";
  const auto with = [&](const std::string &text) {
    folder.write(manifest, text);
    return refusal("good", from(folder.path())).text;
  };
  const std::string rest = "abi_major = 1\nabi_minor_needed = 0\nprovides = [\"bh.tools/1\"]\n";
  CHECK_THAT(with("id = \"bad\"\n" + rest), Contains("another plugin") && Contains("bad"));
  CHECK_THAT(with("id = \"good\n"), Contains("good.plugin.toml:1"));
  CHECK_THAT(with("id = \"../x\"\n" + rest), Contains("id must have"));
  CHECK_THAT(with("id = \"good\"\nabi_major = -1\n"), Contains("abi_major"));
  CHECK_THAT(with("id = \"good\"\nabi_major = 1\nabi_minor_needed = 0\n"), Contains("provides"));
  CHECK_THAT(
      with("id = \"good\"\nabi_major = 1\nabi_minor_needed = 0\nprovides = [\"bh.policy/1\"]\n"),
      Contains("its code declares bh.tools/1"));
  CHECK_THAT(with(std::string(70'000, '#')), Contains("larger than 64 KiB"));
  std::filesystem::remove(folder / manifest);
  const Error error = refusal("good", from(folder.path()));
  CHECK(error.code == BH_E_NOT_FOUND);
  CHECK_THAT(error.text, Contains("manifest") && Contains(manifest));
}

TEST_CASE("a manifest may declare that its plugin is exclusive") {
  testing::TestFolder folder;
  const auto manifest = [&](const std::string &more) {
    folder.write("p.plugin.toml",
                 "id = \"p\"\nabi_major = 1\nabi_minor_needed = 0\n"
                 "provides = [\"bh.tools/1\"]\n" +
                     more);
    return read_manifest(folder / "p.plugin.toml");
  };
  CHECK(!manifest("").value().exclusive);
  CHECK(manifest("exclusive = true\n").value().exclusive);
  CHECK(!manifest("exclusive = false\n").value().exclusive);
  const auto wrong = manifest("exclusive = \"yes\"\n");
  REQUIRE(!wrong.has_value());
  CHECK_THAT(wrong.error().text, Contains("exclusive must be true or false"));
}

TEST_CASE("a plugin whose code contradicts its manifest is rejected") {
  CHECK_THAT(refusal("other-id").text, Contains("contains no plugin with the id \"other-id\""));
  CHECK_THAT(refusal("other-provides").text, Contains("bh.policy/1"));
  CHECK_THAT(refusal("no-create").text, Contains("lacks at least one of the functions"));
}

TEST_CASE("a file that does not have the pinned digest is rejected") {
  LoadOptions options = from(TEST_PLUGINS);
  options.sha256 = digest(std::string(TEST_PLUGINS) + "/good.so");
  CHECK(Library::load("good", nullptr, options).has_value());
  std::transform(options.sha256.begin(), options.sha256.end(), options.sha256.begin(), ::toupper);
  CHECK(Library::load("good", nullptr, options).has_value());
  options.sha256[0] = options.sha256[0] == '0' ? '1' : '0';
  const Error error = refusal("good", options);
  CHECK(error.code == BH_E_DENIED);
  CHECK_THAT(error.text, Contains("sha256"));
}

TEST_CASE("SHA-256 is correct for known texts") {
  testing::TestFolder folder;
  folder.write("abc", "abc");
  CHECK(digest(folder / "abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("init may log, and its errors and exceptions are reported with the plugin's name") {
  std::string logged;
  bh_host host{};
  host.size = sizeof host;
  host.ctx = &logged;
  host.log = [](void *ctx, std::int32_t, bh_str text) {
    static_cast<std::string *>(ctx)->append(text.p, text.n);
  };
  host.log_enabled = [](void *, std::int32_t) -> std::int32_t { return 1; };
  auto library = Library::load("fails-in-init", &host, from(TEST_PLUGINS));
  REQUIRE_FALSE(library.has_value());
  CHECK(logged == "init");
  CHECK(library.error().code == BH_E_UNAVAILABLE);
  CHECK_THAT(library.error().text, Contains("fails-in-init") && Contains("the moon is full"));
  CHECK_THAT(refusal("throws").text, Contains("throws") && Contains("out of init"));
}

TEST_CASE("a plugin that hangs in init is reported and abandoned") {
  LoadOptions options = from(TEST_PLUGINS);
  // The limit includes the time for mapping the file, which a loaded machine may prolong.
  options.init_timeout_ms = 3'000;
  const Error error = refusal("hangs-in-init", options);
  CHECK(error.code == BH_E_TIMEOUT);
  CHECK_THAT(error.text, Contains("plugin hangs-in-init") &&
                             Contains("did not return from init within 3000 ms"));
  CHECK(Library::load("good", nullptr, from(TEST_PLUGINS)).has_value());
}

TEST_CASE("structs of another size are read up to the last member that both sides know") {
  for (const char *plugin : {"bigger", "shorter"}) {
    auto library = Library::load(plugin, nullptr, from(TEST_PLUGINS));
    if (!library) FAIL(library.error().text);
    CHECK((*library)->description().name == (plugin == std::string("bigger") ? "For tests" : ""));
  }
}

TEST_CASE("loading the same file again leaks no descriptor") {
  CHECK(Library::load("good", nullptr, from(TEST_PLUGINS)).has_value());
  const std::size_t before = open_descriptors();
  for (int i = 0; i < 20; ++i)
    CHECK(Library::load("good", nullptr, from(TEST_PLUGINS)).has_value());
  CHECK(open_descriptors() == before);
}

TEST_CASE("two versions of one plugin are loaded side by side") {
  testing::TestFolder folder;
  folder.copy("good");
  auto first = Library::load("good", nullptr, from(folder.path()));
  REQUIRE(first.has_value());
  std::filesystem::copy(folder / "good.so", folder / "fresh");
  std::filesystem::rename(folder / "fresh", folder / "good.so");
  auto second = Library::load("good", nullptr, from(folder.path()));
  REQUIRE(second.has_value());
  CHECK(&(*first)->entry() != &(*second)->entry());
}

TEST_CASE("a linked-in plugin is loaded like a file") {
  static const char *const provides[] = {"bh.tools/1", nullptr};
  static const bh_descriptor descriptor{
      sizeof(bh_descriptor), 0, "linked", provides, {}, {}, {}, {}};
  static bool ended = false;
  static const bh_entry entry{
      sizeof(bh_entry),
      BH_ABI_MAJOR,
      BH_ABI_MINOR,
      0,
      [](const bh_host *host, bh_error *) -> bh_status {
        return host->get_ext(host->ctx, BH_EXT_HOST_FD) == nullptr ? BH_OK : BH_E_INTERNAL;
      },
      [] { ended = true; },
      1,
      BH_ABI_RC,
      [](std::uint32_t i) { return i == 0 ? &descriptor : nullptr; },
      [](const char *, const bh_host *, const bh_plugin **, bh_error *) -> bh_status {
        return BH_E_UNSUPPORTED;
      }};
  const bh_plugin_entry_fn fn = [] { return &entry; };
  {
    auto library = Library::from_entry("linked", fn, nullptr, {});
    if (!library) FAIL(library.error().text);
    CHECK((*library)->manifest().provides == std::vector<std::string>{"bh.tools/1"});
    CHECK_FALSE(ended);
  }
  CHECK(ended);
  CHECK_FALSE(Library::from_entry("other", fn, nullptr, {}).has_value());
}

TEST_CASE("list_plugins returns valid plugins, and errors for invalid plugins") {
  testing::TestFolder folder;
  folder.copy("good");
  folder.write(
      "alone.plugin.toml",
      "id = \"alone\"\nabi_major = 1\nabi_minor_needed = 0\nprovides = [\"bh.tools/1\"]\n");
  folder.write("broken.plugin.toml", "id = ");
  const auto found = list_plugins({folder.path(), folder / "none"});
  REQUIRE(found.size() == 3);
  CHECK(found[0].manifest.id == "alone");
  CHECK_THAT(found[0].error, Contains("missing"));
  CHECK(found[1].manifest.id == "broken");
  CHECK_FALSE(found[1].error.empty());
  CHECK(found[2].path == folder / "good.so");
  CHECK(found[2].error.empty());
}

}  // namespace
TEST_CASE("if a plugin was rejected and is inaccessible now, the first reason is reported") {
  CheckedLibraries checked;
  checked.emplace("good", fail(BH_E_ABI, "plugin good: the first reason"));
  const LoadOptions nowhere = from("/nonexistent");
  const auto refused = load_library("good", checked, nowhere);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().text == "plugin good: the first reason");
  const auto other = load_library("other", checked, nowhere);
  REQUIRE_FALSE(other.has_value());
  CHECK(other.error().text.find("first reason") == std::string::npos);
}

}  // namespace bulkhead
