#include "trust/installed_plugins.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "bulkhead/cpp/clock.hpp"
#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/plugin_signature.hpp"
#include "plugin/sealed_copy.hpp"
#include "plugin/text.hpp"
#include "trust/version_order.hpp"

namespace bulkhead::program {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view manifest_end = ".plugin.toml";
constexpr std::size_t most_manifest_bytes = 64u << 10;
// Names of temporary folders begin with this. They are not plugin IDs, so no gateway loads them.
constexpr std::string_view temporary_prefix = ".new-";

std::unexpected<Error> disk_error(const std::string &path) {
  return fail(BH_E_IO, describe_errno(path, errno));
}

// Writes a new file that all users can read, and waits until it is on the disk. `more` returns the
// next piece, or an empty one at the end.
template <class More>
Result<void> create_file(const std::string &path, More more) {
  const OwnedFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return disk_error(path);
  for (;;) {
    Result<std::string_view> piece = more();
    if (!piece) return std::unexpected(piece.error());
    if (piece->empty()) break;
    while (!piece->empty()) {
      const ssize_t n = ::write(fd.get(), piece->data(), piece->size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return disk_error(path);
      piece->remove_prefix(static_cast<std::size_t>(n));
    }
  }
  if (::fchmod(fd.get(), 0444) != 0 || ::fsync(fd.get()) != 0) return disk_error(path);
  return {};
}

Result<void> write_text(const std::string &path, std::string_view text) {
  return create_file(path, [&]() -> Result<std::string_view> { return std::exchange(text, {}); });
}

Result<void> copy_library(int from, const std::string &path) {
  std::array<char, 64 * 1024> piece;
  off_t offset = 0;
  return create_file(path, [&]() -> Result<std::string_view> {
    ssize_t n = 0;
    do {
      n = ::pread(from, piece.data(), piece.size(), offset);
    } while (n < 0 && errno == EINTR);
    if (n < 0) return disk_error(path);
    offset += n;
    return std::string_view(piece.data(), static_cast<std::size_t>(n));
  });
}

Result<void> sync_folder(const std::string &folder) {
  const OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) return disk_error(folder);
  return {};
}

void remove_folder(const std::string &folder) {
  std::error_code ignored;
  fs::remove_all(folder, ignored);
}

bool path_exists(const std::string &path) {
  struct stat status{};
  return ::lstat(path.c_str(), &status) == 0;
}

std::string short_name(const InstalledPlugin &plugin) {
  return plugin.version + " (sha256 " + plugin.sha256.substr(0, 12) + ")";
}

PluginEvent event_of(const char *name, const InstalledPlugin &plugin, std::string note) {
  return {bh::unix_ms(), name,          plugin.id,      plugin.version,
          plugin.sha256, plugin.signer, std::move(note)};
}

}  // namespace

// A verified plugin that is to be installed.
struct InstalledPlugins::Candidate {
  CheckedLibrary library;
  std::string manifest_text;
  InstalledPlugin plugin;
};

InstalledPlugin InstalledPlugins::installed(const std::string &id) const {
  InstalledPlugin out;
  if (!path_exists(folder_ + "/" + id)) return out;
  out.id = id;
  out.path = path_of(id);
  const auto checked = Library::check(out.path, {});
  if (!checked) return out;
  out.version = checked->manifest.version;
  if (const auto digest = sha256_of(checked->fd())) out.sha256 = *digest;
  return out;
}

Result<OwnedFd> InstalledPlugins::lock() const {
  if (auto made = make_private_dir(folder_); !made) return std::unexpected(made.error());
  auto held = lock_file(folder_ + "/.lock", lock_wait_ms);
  if (!held && held.error().code == BH_E_UNAVAILABLE)
    return fail(BH_E_UNAVAILABLE, "another command is changing " + tilde(folder_) + "; try again");
  return held;
}

// Removes what a killed command has left. The caller holds the lock, so no command uses it.
void InstalledPlugins::remove_leftovers() const {
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(temporary_prefix))
      remove_folder(at->path().string());
  }
}

// Writes the files to a new folder, verifies them there, and returns the folder.
Result<std::string> InstalledPlugins::prepare(const Candidate &candidate,
                                              const LoadOptions &options) const {
  std::string folder = folder_ + "/" + std::string(temporary_prefix) + "XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return disk_error(folder_);
  const std::string base = folder + "/" + candidate.plugin.id;
  const auto write = [&]() -> Result<void> {
    step("manifest");
    if (auto ok = write_text(base + std::string(manifest_end), candidate.manifest_text); !ok)
      return ok;
    const std::string &signature = candidate.library.signature;
    if (!signature.empty()) {
      if (auto ok = write_text(base + ".so" + std::string(signature_suffix), signature); !ok)
        return ok;
    }
    step("library");
    if (auto ok = copy_library(candidate.library.fd(), base + ".so"); !ok) return ok;
    if (auto ok = sync_folder(folder); !ok) return ok;
    step("verify");
    // What is installed is verified again, because the original was read from another place.
    LoadOptions exact = options;
    exact.signature_file.clear();
    exact.sha256 = candidate.plugin.sha256;
    const auto copy = Library::check(base + ".so", exact);
    if (!copy) return std::unexpected(copy.error());
    return {};
  };
  if (auto written = write(); !written) {
    remove_folder(folder);
    return std::unexpected(written.error());
  }
  return folder;
}

// Puts the prepared folder into its place in one step. Afterwards, `prepared` is the old version.
Result<void> InstalledPlugins::publish(const std::string &prepared, const std::string &id,
                                       bool replaces) const {
  const std::string place = folder_ + "/" + id;
  step("publish");
  if (::renameat2(AT_FDCWD, prepared.c_str(), AT_FDCWD, place.c_str(),
                  replaces ? RENAME_EXCHANGE : RENAME_NOREPLACE) != 0) {
    if (errno == EINVAL || errno == ENOSYS)
      return fail(BH_E_UNSUPPORTED, "the file system of " + tilde(folder_) +
                                        " cannot exchange two folders in one step; set "
                                        "XDG_DATA_HOME to a folder on another one");
    return disk_error(place);
  }
  step("sync");
  return sync_folder(folder_);
}

Result<PluginAdded> InstalledPlugins::add(const PluginAdd &request, const PluginTrust &trust) {
  LoadOptions options;
  options.trust = trust;
  options.signature_file = request.signature_file;
  Candidate candidate;
  auto checked = Library::check(request.file, options);
  if (!checked) return std::unexpected(checked.error());
  candidate.library = std::move(*checked);
  const CheckedLibrary &library = candidate.library;
  if (!request.signature_file.empty() && library.signer.empty())
    return fail(BH_E_DENIED,
                request.signature_file +
                    " cannot be verified: its key is not in plugin_trust.trusted_keys of the "
                    "profile");
  if (static_cast<std::uint64_t>(library.status.st_size) > max_sealed_bytes)
    return fail(BH_E_LIMIT, library.path + " is larger than 256 MiB");
  const std::string manifest =
      library.path.substr(0, library.path.rfind(".so")) + std::string(manifest_end);
  const OwnedFd manifest_fd(
      ::open(manifest.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
  if (!manifest_fd) return disk_error(manifest);
  auto text = read_bounded(manifest_fd.get(), manifest, most_manifest_bytes);
  if (!text) return std::unexpected(text.error());
  if (sha256_of_text(*text) != library.manifest.sha256)
    return fail(BH_E_INVALID, manifest + " was changed while it was read; try again");
  candidate.manifest_text = std::move(*text);
  const auto digest = sha256_of(library.fd());
  if (!digest) return std::unexpected(digest.error());
  InstalledPlugin &now = candidate.plugin;
  now.id = library.manifest.id;
  now.version = library.manifest.version;
  now.sha256 = *digest;
  now.signer = library.signer;
  now.path = path_of(now.id);

  OwnedFd held;
  if (!request.dry_run) {
    auto locked = lock();
    if (!locked) return std::unexpected(locked.error());
    held = std::move(*locked);
    remove_leftovers();
  }
  PluginAdded out;
  out.now = now;
  out.before = installed(now.id);
  const bool replaces = !out.before.id.empty();
  if (replaces && !request.allow_older && compare_versions(now.version, out.before.version) < 0)
    return fail(BH_E_DENIED, "version " + now.version + " of " + now.id +
                                 " is older than the installed version " + out.before.version +
                                 "; --allow-older installs it");
  if (!replaces && list_plugins({folder_}).size() >= max_plugins)
    return fail(BH_E_LIMIT, tilde(folder_) + " already has " + std::to_string(max_plugins) +
                                " plugins; remove one");
  if (replaces && out.before.sha256 == now.sha256) {
    LoadOptions same = options;
    same.signature_file.clear();
    const auto there = Library::check(now.path, same);
    out.unchanged = there && there->manifest.sha256 == library.manifest.sha256 &&
                    there->signature == library.signature;
  }
  if (request.dry_run || out.unchanged) return out;

  step("prepare");
  const auto prepared = prepare(candidate, options);
  if (!prepared) return std::unexpected(prepared.error());
  // The event is logged first: if this process is killed, the log may have a change that did not
  // happen, but it never lacks one that did.
  PluginLog log(state_dir_);
  step("log");
  auto done = log.append(
      event_of("add", now, replaces ? "replaces " + short_name(out.before) : std::string()));
  if (done) {
    done = publish(*prepared, now.id, replaces);
    if (!done) static_cast<void>(log.append(event_of("failed", now, done.error().text)));
  }
  step("clean");
  remove_folder(*prepared);
  if (!done) return std::unexpected(done.error());
  return out;
}

Result<InstalledPlugin> InstalledPlugins::remove(const std::string &id, bool dry_run) {
  const auto absent = [&] {
    return fail(BH_E_NOT_FOUND, "the plugin \"" + id + "\" is not installed in " + tilde(folder_));
  };
  if (!is_plain_name(id))
    return fail(BH_E_INVALID, "a plugin ID has 1 to 64 characters from a-z, 0-9 and '-'");
  if (!path_exists(folder_ + "/" + id)) return absent();
  OwnedFd held;
  if (!dry_run) {
    auto locked = lock();
    if (!locked) return std::unexpected(locked.error());
    held = std::move(*locked);
    remove_leftovers();
  }
  const InstalledPlugin out = installed(id);
  if (out.id.empty()) return absent();
  if (dry_run) return out;
  PluginLog log(state_dir_);
  if (auto logged = log.append(event_of("remove", out, {})); !logged)
    return std::unexpected(logged.error());
  std::string away = folder_ + "/" + std::string(temporary_prefix) + "XXXXXX";
  if (::mkdtemp(away.data()) == nullptr) return disk_error(folder_);
  step("publish");
  Result<void> done;
  if (::rename((folder_ + "/" + id).c_str(), away.c_str()) != 0) {
    done = disk_error(folder_ + "/" + id);
    static_cast<void>(log.append(event_of("failed", out, done.error().text)));
  } else {
    done = sync_folder(folder_);
  }
  step("clean");
  remove_folder(away);
  if (!done) return std::unexpected(done.error());
  return out;
}

}  // namespace bulkhead::program
