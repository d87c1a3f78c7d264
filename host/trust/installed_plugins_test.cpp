// Tests the store of installed plugins: versions, signatures, interruption and concurrent changes.
#include "trust/installed_plugins.hpp"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "plugin/plugin_file.hpp"
#include "plugin/plugin_signature.hpp"
#include "plugin/test_folder.hpp"
#include "signing/signing_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::program;
using Catch::Contains;

namespace fs = std::filesystem;

namespace {

std::string content(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A folder with versions of the plugin "good", and a store.
struct World {
  // Returns the library of a version. Bytes after the end of an ELF file have no effect, but change
  // its digest.
  std::string version(const std::string &number, const test::Signer *signer = nullptr) {
    const std::string at = folder / number;
    fs::create_directory(at);
    const std::string from = std::string(TEST_PLUGINS) + "/good";
    std::ofstream(at + "/good.so", std::ios::binary) << content(from + ".so") << number;
    std::string manifest = content(from + ".plugin.toml");
    manifest.replace(manifest.find("1.2.3"), 5, number);
    std::ofstream(at + "/good.plugin.toml", std::ios::binary) << manifest;
    if (signer != nullptr) {
      const auto comment = signing_comment(read_manifest(at + "/good.plugin.toml").value());
      std::ofstream(at + "/good.so.minisig", std::ios::binary)
          << signer->sign(content(at + "/good.so"), comment.value(), true);
    }
    return at + "/good.so";
  }

  Result<PluginAdded> add(const std::string &file, const PluginTrust &trust = {}) {
    return store.add({file, {}, false, false}, trust);
  }
  // The version that a gateway would load, or an empty string.
  std::string loaded(const PluginTrust &trust = {}) const {
    LoadOptions options;
    options.dirs = {store.folder()};
    options.trust = trust;
    const auto checked = Library::check("good", options);
    return checked ? checked->manifest.version : std::string();
  }
  std::vector<std::string> events() const {
    std::vector<std::string> out;
    const auto log = PluginLog(state).read();
    for (const PluginEvent &event : log.value()) out.push_back(event.event + " " + event.version);
    return out;
  }
  std::size_t leftovers() const {
    std::size_t count = 0;
    for (const auto &entry : fs::directory_iterator(store.folder()))
      count += entry.path().filename().string().starts_with(".new-") ? 1 : 0;
    return count;
  }

  testing::TestFolder folder;
  const std::string state = folder / "state";
  InstalledPlugins store{folder / "store", state};
};

PluginTrust requiring(const test::Signer &signer) {
  PluginTrust trust;
  const std::string lines = signer.public_key();
  trust.trusted_keys = {lines.substr(lines.find('\n') + 1)};
  trust.trusted_keys[0].pop_back();
  trust.require_signatures = true;
  return trust;
}

}  // namespace

TEST_CASE("an added plugin is found by its ID and can be removed") {
  World world;
  const auto added = world.add(world.version("1.0.0"));
  if (!added) FAIL(added.error().text);
  CHECK(added->now.id == "good");
  CHECK(added->now.version == "1.0.0");
  CHECK(added->before.id.empty());
  CHECK(world.loaded() == "1.0.0");
  struct stat status{};
  REQUIRE(::stat(world.store.folder().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  const auto again = world.add(world.folder / "1.0.0/good.so");
  REQUIRE(again.has_value());
  CHECK(again->unchanged);
  const auto removed = world.store.remove("good", false);
  REQUIRE(removed.has_value());
  CHECK(removed->version == "1.0.0");
  CHECK(removed->sha256 == added->now.sha256);
  CHECK(world.loaded().empty());
  CHECK(world.leftovers() == 0);
  CHECK(world.events() == std::vector<std::string>{"add 1.0.0", "remove 1.0.0"});
  CHECK(world.store.remove("good", false).error().code == BH_E_NOT_FOUND);
  CHECK(world.store.remove("../good", false).error().code == BH_E_INVALID);
}

TEST_CASE("an older version is rejected unless it is requested") {
  World world;
  REQUIRE(world.add(world.version("1.10.0")).has_value());
  const std::string older = world.version("1.9.0");
  const auto refused = world.add(older);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == BH_E_DENIED);
  CHECK_THAT(refused.error().text,
             Contains("1.9.0") && Contains("1.10.0") && Contains("--allow-older"));
  CHECK(world.loaded() == "1.10.0");
  const auto allowed = world.store.add({older, {}, true, false}, {});
  REQUIRE(allowed.has_value());
  CHECK(allowed->before.version == "1.10.0");
  CHECK(world.loaded() == "1.9.0");
}

TEST_CASE("a dry run verifies and changes nothing") {
  World world;
  const auto dry = world.store.add({world.version("1.0.0"), {}, false, true}, {});
  REQUIRE(dry.has_value());
  CHECK(dry->now.version == "1.0.0");
  CHECK_FALSE(fs::exists(world.store.folder()));
  REQUIRE(world.add(world.folder / "1.0.0/good.so").has_value());
  CHECK(world.store.add({world.version("0.9.0"), {}, false, true}, {}).error().code == BH_E_DENIED);
  REQUIRE(world.store.remove("good", true).has_value());
  CHECK(world.loaded() == "1.0.0");
  CHECK(world.events() == std::vector<std::string>{"add 1.0.0"});
}

TEST_CASE("the signature is installed with the plugin, also from another path") {
  World world;
  const test::Signer signer;
  const PluginTrust trust = requiring(signer);
  CHECK(world.add(world.version("1.0.0"), trust).error().code == BH_E_DENIED);
  const std::string path = world.version("1.1.0", &signer);
  fs::rename(path + ".minisig", world.folder / "signature");
  const PluginAdd request{path, world.folder / "signature", false, false};
  // Without the key, the signature that was named cannot be verified.
  CHECK(world.store.add(request, {}).error().code == BH_E_DENIED);
  const auto added = world.store.add(request, trust);
  if (!added) FAIL(added.error().text);
  CHECK(added->now.signer.size() == 16);
  CHECK(world.loaded(trust) == "1.1.0");
  const auto log = PluginLog(world.state).read();
  REQUIRE(log.has_value());
  REQUIRE(log->size() == 1);
  CHECK(log->front().signer == added->now.signer);
  CHECK(log->front().sha256 == added->now.sha256);
}

TEST_CASE("a command that is killed at any step leaves the old version or the new one") {
  const char *steps[] = {"prepare", "manifest", "library", "verify",
                         "log",     "publish",  "sync",    "clean"};
  for (const bool replaces : {false, true}) {
    for (const char *at : steps) {
      INFO(at);
      World world;
      if (replaces) REQUIRE(world.add(world.version("1.0.0")).has_value());
      const std::string newer = world.version("2.0.0");
      const pid_t child = ::fork();
      REQUIRE(child >= 0);
      if (child == 0) {
        world.store.on_step = [&](const char *step) {
          if (std::string_view(step) == at) ::kill(::getpid(), SIGKILL);
        };
        static_cast<void>(world.store.add({newer, {}, false, false}, {}));
        ::_exit(0);
      }
      int status = 0;
      REQUIRE(::waitpid(child, &status, 0) == child);
      REQUIRE(WIFSIGNALED(status));
      const std::string there = world.loaded();
      const bool published = std::string_view(at) == "sync" || std::string_view(at) == "clean";
      CHECK(there == (published ? "2.0.0" : replaces ? "1.0.0" : ""));
      // The next command succeeds and removes what was left.
      REQUIRE(world.add(newer).has_value());
      CHECK(world.loaded() == "2.0.0");
      CHECK(world.leftovers() == 0);
    }
  }
}

TEST_CASE("of several commands at the same time, each sees a complete store") {
  World world;
  std::vector<std::string> files;
  for (const char *number : {"1.0.0", "1.1.0", "1.2.0", "1.3.0"})
    files.push_back(world.version(number));
  std::vector<pid_t> children;
  for (const std::string &file : files) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const auto added = world.add(file);
      ::_exit(added ? 0 : added.error().code == BH_E_DENIED ? 1 : 2);
    }
    children.push_back(child);
  }
  int rejected = 0;
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) < 2);  // the only failure is an older version
    rejected += WEXITSTATUS(status);
  }
  CHECK(world.loaded() == "1.3.0");
  CHECK(world.leftovers() == 0);
  CHECK(world.events().size() == files.size() - static_cast<std::size_t>(rejected));
}

TEST_CASE("a command that finds the store locked reports it") {
  World world;
  REQUIRE(world.add(world.version("1.0.0")).has_value());
  fs::remove(world.store.folder() + "/.lock");
  fs::create_symlink("/nonexistent", world.store.folder() + "/.lock");
  CHECK_FALSE(world.store.remove("good", false).has_value());
  CHECK(world.loaded() == "1.0.0");
}

TEST_CASE("a store that is a symbolic link or that others can write to is not used") {
  World world;
  fs::create_directory(world.folder / "elsewhere");
  fs::create_directory_symlink(world.folder / "elsewhere", world.store.folder());
  const auto refused = world.add(world.version("1.0.0"));
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().text, Contains("symbolic link"));
  fs::remove(world.store.folder());
  REQUIRE(world.add(world.folder / "1.0.0/good.so").has_value());
  REQUIRE(::chmod(world.store.folder().c_str(), 0770) == 0);
  CHECK(world.loaded().empty());  // a gateway rejects it
}
