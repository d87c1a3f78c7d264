// Tests the signatures of plugins: which libraries are rejected, and that the verified bytes are
// the ones that are mapped.
#include "plugin/plugin_signature.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "plugin/loader.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/sealed_copy.hpp"
#include "plugin/test_folder.hpp"
#include "signing/signing_test_util.hpp"

namespace bulkhead {
namespace {

using Catch::Contains;

// Signatures of kLibrary by minisign 0.11, with and without -l.
constexpr std::string_view kLibrary = "library bytes\n";
constexpr std::string_view kManifest = "manifest\n";
constexpr const char *kKey = "RWTK6UxCx1h7lO6LhrQ6FOGv0S9HleIjapLwfrFkKrXKYuOCGyo4FlxQ";
constexpr const char *kKeyId = "947B58C7424CE9CA";
const std::string kPrehashed =
    "untrusted comment: signature from minisign secret key\n"
    "RUTK6UxCx1h7lBe5h6dnQQxyTds/taVdj70s0x6Id65iqNJkBsSSt3Z7qftWINzJQPVQhKds03VqtK3BxMsknLHtV3clcc"
    "hLswg=\n"
    "trusted comment: bulkhead-plugin id=good version=1.2.3 abi=0.2 "
    "manifest=7021e610a5f62eefd01830fea68e5fa180e8cf017c08ea0890c326b2854ebc96\n"
    "LKW3uWxy2GqBlmhjUT/26BBXIsqlI0pWAUhk7O3uauR+QB7iV7NcipJAzOTRlVww1wiVLxBnRZxj4UkkWa5JDA==\n";
const std::string kLegacy =
    "untrusted comment: signature from minisign secret key\n"
    "RWTK6UxCx1h7lChRzNd1xDuRwmjluRf7+Ni634D0WZlNAETJlil/nWrLSSl5busYkGdJwIBsyTxSLlc8/5AarMONJXA8hL"
    "RKEwY=\n"
    "trusted comment: bulkhead-plugin id=good version=1.2.3 abi=0.2 "
    "manifest=7021e610a5f62eefd01830fea68e5fa180e8cf017c08ea0890c326b2854ebc96\n"
    "EfZ40n6fjbNyeuZ4K5eu4cUOP/HvhwumhVNo/Uhnk1hVa/ZpL+YO8JGcErDXsosDk/56V3Y1xF0TWfr8WWsEBQ==\n";

Manifest fixed_manifest() {
  Manifest manifest;
  manifest.id = "good";
  manifest.version = "1.2.3";
  manifest.abi_minor_needed = 2;
  manifest.sha256 = sha256_of_text(kManifest);
  return manifest;
}

PluginTrust trusting(const std::string &key, bool required = true) {
  PluginTrust trust;
  trust.trusted_keys = {key};
  trust.require_signatures = required;
  return trust;
}

std::string key_of(const test::Signer &signer) {
  const std::string lines = signer.public_key();
  std::string key = lines.substr(lines.find('\n') + 1);
  key.pop_back();
  return key;
}

std::string read(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder with the plugin "good", which `signer` can sign.
struct SignedPlugin {
  SignedPlugin() { folder.copy("good"); }

  std::string path() const { return folder / "good.so"; }
  std::string sha256() const { return sha256_of_text(read(path())); }
  std::string comment() const {
    return signing_comment(read_manifest(folder / "good.plugin.toml").value()).value();
  }
  void sign(const test::Signer &by, const std::string &comment) {
    folder.write("good.so.minisig", by.sign(read(path()), comment, true));
  }
  void sign() { sign(signer, comment()); }
  PluginTrust trust() const { return trusting(key_of(signer)); }

  Result<CheckedLibrary> check(const PluginTrust &trust) const {
    LoadOptions options;
    options.trust = trust;
    return Library::check(path(), options);
  }
  Error refused(const PluginTrust &trust) const {
    const auto checked = check(trust);
    REQUIRE_FALSE(checked.has_value());
    INFO(checked.error().text);
    CHECK_THAT(checked.error().text, Contains("good.so"));
    return checked.error();
  }

  test::Signer signer;
  testing::TestFolder folder;
};

}  // namespace

TEST_CASE("signatures of plugins by minisign are accepted in both formats") {
  const Manifest manifest = fixed_manifest();
  for (const std::string &signature : {kPrehashed, kLegacy}) {
    CHECK(verify_plugin(manifest, kLibrary, signature, trusting(kKey)) == std::string(kKeyId));
    CHECK(verify_plugin(manifest, "library bytez\n", signature, trusting(kKey)).error().code ==
          BH_E_DENIED);
  }
}

TEST_CASE("a signature covers every part of the manifest that its comment names") {
  Manifest other = fixed_manifest();
  other.id = "better";
  Manifest newer = fixed_manifest();
  newer.version = "1.2.4";
  Manifest abi = fixed_manifest();
  abi.abi_minor_needed = 1;
  Manifest edited = fixed_manifest();
  edited.sha256 = sha256_of_text("exclusive = false\n");
  for (const Manifest &manifest : {other, newer, abi, edited}) {
    const auto refused = verify_plugin(manifest, kLibrary, kPrehashed, trusting(kKey));
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code == BH_E_DENIED);
    CHECK_THAT(refused.error().text, Contains("is signed for another plugin or manifest"));
  }
}

TEST_CASE("a version that would make the trusted comment ambiguous cannot be signed") {
  for (const char *version : {"", "1.0 abi=9.9", "1.0\n", "1/2"}) {
    Manifest manifest = fixed_manifest();
    manifest.version = version;
    INFO(version);
    CHECK(signing_comment(manifest).error().code == BH_E_INVALID);
  }
}

TEST_CASE("a signed plugin is loaded, and its signer is known") {
  SignedPlugin plugin;
  plugin.sign();
  auto checked = plugin.check(plugin.trust());
  if (!checked) FAIL(checked.error().text);
  CHECK(checked->sealed);
  CHECK(checked->signer.size() == 16);
  CHECK(checked->sha256 == plugin.sha256());
  CHECK(checked->signature == read(plugin.folder / "good.so.minisig"));
  auto library = Library::load(std::move(*checked), nullptr, {});
  if (!library) FAIL(library.error().text);
  CHECK((*library)->path() == plugin.path());
}

TEST_CASE("a changed byte in the library, the signature, its comment or the manifest is detected") {
  SignedPlugin plugin;
  plugin.sign();
  const auto with = [&](const std::string &name, auto change) {
    const std::string before = read(plugin.folder / name);
    std::string after = before;
    change(after);
    REQUIRE(after != before);
    std::filesystem::remove(plugin.folder / name);
    plugin.folder.write(name, after);
    const Error error = plugin.refused(plugin.trust());
    std::filesystem::remove(plugin.folder / name);
    plugin.folder.write(name, before);
    return error;
  };
  // The last byte of the file is not part of any code or table that the other checks read.
  CHECK_THAT(with("good.so", [](std::string &text) { text += '\0'; }).text,
             Contains("the signature does not match the file"));
  CHECK_THAT(with("good.so",
                  [](std::string &text) {
                    text[text.size() / 2] = static_cast<char>(text[text.size() / 2] ^ 1);
                  })
                 .text,
             Contains("the signature does not match the file"));
  CHECK_THAT(with("good.so.minisig",
                  [](std::string &text) {
                    const std::size_t at = text.find('\n') + 40;
                    text[at] = text[at] == 'A' ? 'B' : 'A';
                  })
                 .text,
             Contains("the signature does not match the file"));
  CHECK_THAT(with("good.so.minisig",
                  [](std::string &text) { text.replace(text.find("version=1"), 9, "version=2"); })
                 .text,
             Contains("the trusted comment does not match its signature"));
  CHECK_THAT(with("good.plugin.toml", [](std::string &text) { text += "exclusive = true\n"; }).text,
             Contains("is signed for another plugin or manifest"));
  CHECK(plugin.check(plugin.trust()).has_value());
}

TEST_CASE("the signature of another plugin, or for another plugin, is rejected") {
  SignedPlugin plugin;
  plugin.folder.write("good.so.minisig", plugin.signer.sign("other bytes", plugin.comment(), true));
  CHECK_THAT(plugin.refused(plugin.trust()).text,
             Contains("the signature does not match the file"));
  std::string other = plugin.comment();
  other.replace(other.find("id=good"), 7, "id=evil");
  plugin.sign(plugin.signer, other);
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("is signed for another plugin"));
}

TEST_CASE("a key that is not trusted is rejected, even with the ID of a trusted key") {
  SignedPlugin plugin;
  test::Signer other;
  plugin.sign(other, plugin.comment());
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("not in plugin_trust.trusted_keys"));
  other.take_id_of(plugin.signer);
  plugin.sign(other, plugin.comment());
  CHECK_THAT(plugin.refused(plugin.trust()).text,
             Contains("the signature does not match the file"));
}

TEST_CASE("an unsigned plugin is rejected only if signatures are required") {
  SignedPlugin plugin;
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("is not signed"));
  PluginTrust no_keys;
  no_keys.require_signatures = true;
  CHECK_THAT(plugin.refused(no_keys).text, Contains("no plugin_trust.trusted_keys"));
  const auto checked = plugin.check(trusting(key_of(plugin.signer), false));
  REQUIRE(checked.has_value());
  CHECK(checked->signer.empty());
  CHECK_FALSE(checked->sealed);
}

TEST_CASE("without required signatures, a trusted key's signature must still match") {
  SignedPlugin plugin;
  plugin.folder.write("good.so.minisig", plugin.signer.sign("other", plugin.comment(), true));
  PluginTrust trust = plugin.trust();
  trust.require_signatures = false;
  CHECK_THAT(plugin.refused(trust).text, Contains("the signature does not match the file"));
  // A signature by an unknown key has no meaning.
  plugin.sign(test::Signer(), plugin.comment());
  const auto checked = plugin.check(trust);
  REQUIRE(checked.has_value());
  CHECK(checked->signer.empty());
}

TEST_CASE("revoked keys and digests are rejected") {
  SignedPlugin plugin;
  plugin.sign();
  const auto checked = plugin.check(plugin.trust());
  REQUIRE(checked.has_value());
  PluginTrust key = plugin.trust();
  key.revoked_keys = {checked->signer};
  CHECK_THAT(plugin.refused(key).text, Contains("revoked_keys"));
  key.require_signatures = false;
  CHECK_THAT(plugin.refused(key).text, Contains("revoked_keys"));
  PluginTrust digest = plugin.trust();
  digest.revoked_digests = {plugin.sha256()};
  CHECK_THAT(plugin.refused(digest).text, Contains("revoked_digests"));
  PluginTrust quarantine;
  quarantine.quarantined = {plugin.sha256()};
  CHECK_THAT(plugin.refused(quarantine).text, Contains("plugin verify --clear"));
  // A plugin of the program is never quarantined.
  quarantine.program_dir = plugin.folder.path();
  CHECK(plugin.check(quarantine).has_value());
  // Neither the program's own folder nor a copy of one of its plugins is exempt from revocation.
  digest.program_dir = plugin.folder.path();
  CHECK_THAT(plugin.refused(digest).text, Contains("revoked_digests"));
}

TEST_CASE("plugins in the program's own folder need no signature") {
  SignedPlugin plugin;
  PluginTrust trust = plugin.trust();
  trust.program_dir = plugin.folder.path();
  const auto checked = plugin.check(trust);
  REQUIRE(checked.has_value());
  CHECK(checked->trusted_by_place);
  LoadOptions copy;
  copy.trust = plugin.trust();
  copy.is_program_copy = true;
  CHECK(Library::check(plugin.path(), copy).has_value());
  // Another folder with the same plugin is not the program's.
  testing::TestFolder other;
  trust.program_dir = other.path();
  CHECK_THAT(plugin.refused(trust).text, Contains("is not signed"));
}

TEST_CASE("a signature file that is not a small regular file of this user is rejected") {
  SignedPlugin plugin;
  plugin.sign();
  const std::string path = plugin.folder / "good.so.minisig";
  std::filesystem::rename(path, plugin.folder / "kept");
  std::filesystem::create_symlink(plugin.folder / "kept", path);
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("symbolic link"));
  std::filesystem::remove(path);
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("not a regular file"));
  std::filesystem::remove(path);
  plugin.folder.write("good.so.minisig", "");
  std::filesystem::resize_file(path, 1u << 30);
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("larger than 16 KiB"));
  std::filesystem::remove(path);
  plugin.sign();
  REQUIRE(::chmod(path.c_str(), 0666) == 0);
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("writable by other users"));
  std::filesystem::remove(path);
  plugin.folder.write("good.so.minisig", "no signature\n");
  CHECK_THAT(plugin.refused(plugin.trust()).text, Contains("not a minisign signature"));
}

TEST_CASE("the verified bytes are mapped, even if the file is overwritten after verification") {
  SignedPlugin plugin;
  plugin.sign();
  auto checked = plugin.check(plugin.trust());
  REQUIRE(checked.has_value());
  {
    std::fstream file(plugin.path(), std::ios::in | std::ios::out | std::ios::binary);
    file << std::string(4096, '\xCC');
  }
  REQUIRE(plugin.sha256() != checked->sha256);
  auto library = Library::load(std::move(*checked), nullptr, {});
  if (!library) FAIL(library.error().text);
  CHECK((*library)->entry().count == 1);
}

TEST_CASE("a sealed copy cannot be changed, and its size is limited") {
  testing::TestFolder folder;
  folder.write("small", "some bytes");
  const OwnedFd file(::open((folder / "small").c_str(), O_RDONLY | O_CLOEXEC));
  const auto copy = sealed_copy(file.get());
  REQUIRE(copy.has_value());
  CHECK(FileView::of(copy->get())->text() == "some bytes");
  CHECK(::pwrite(copy->get(), "x", 1, 0) == -1);
  CHECK(::ftruncate(copy->get(), 0) == -1);
  CHECK(::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, copy->get(), 0) == MAP_FAILED);
  folder.write("large", "");
  std::filesystem::resize_file(folder / "large", max_sealed_bytes + 1);
  const OwnedFd large(::open((folder / "large").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(sealed_copy(large.get()).error().code == BH_E_LIMIT);
}

TEST_CASE("a plugin in a folder of its own is found, unless others can replace this folder") {
  testing::TestFolder plugins;
  std::filesystem::create_directory(plugins / "good");
  for (const char *end : {".so", ".plugin.toml"})
    std::filesystem::copy(std::string(TEST_PLUGINS) + "/good" + end,
                          plugins / (std::string("good/good") + end));
  LoadOptions options;
  options.dirs = {plugins.path()};
  const auto checked = Library::check("good", options);
  REQUIRE(checked.has_value());
  CHECK(checked->path == plugins / "good/good.so");
  const auto found = list_plugins(options.dirs);
  REQUIRE(found.size() == 1);
  CHECK(found[0].path == checked->path);
  CHECK(found[0].error.empty());
  REQUIRE(::chmod(plugins.path().c_str(), 0777) == 0);
  CHECK(Library::check("good", options).error().code == BH_E_DENIED);
}

}  // namespace bulkhead
