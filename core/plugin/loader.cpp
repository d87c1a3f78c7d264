#include "plugin/loader.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>

#include "plugin/mapping.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/plugin_signature.hpp"
#include "plugin/sealed_copy.hpp"
#include "plugin/text.hpp"
#include "signing/minisign.hpp"

namespace bulkhead {
namespace {

enum class Phase : std::uint8_t { constructors, entry, init };

// State that is shared by the helper thread and the thread that waits for it. If the plugin's code
// hangs, the helper thread keeps this state alive. Once `abandoned` is set, this state must not
// point to the waiting thread's data.
struct Attempt {
  std::string plugin;
  OwnedFd fd;  // the plugin's file; empty for a linked-in plugin
  struct stat status{};
  std::string sealed_sha256;  // set if `fd` is a sealed copy with this digest
  bh_plugin_entry_fn entry_fn = nullptr;
  std::string host_name, host_version;
  bh_host host{};

  std::mutex mutex;
  std::condition_variable changed;
  const bh_host *outer = nullptr;  // receives log lines; null after the wait has ended
  Phase phase = Phase::constructors;
  bool finished = false, abandoned = false;
  std::optional<Error> error;
  const bh_entry *entry = nullptr;
  std::vector<PluginDescription> plugins;
};

void log_in_init(void *ctx, std::int32_t level, bh_str message) {
  auto &a = *static_cast<Attempt *>(ctx);
  const std::lock_guard lock(a.mutex);
  if (a.outer != nullptr) a.outer->log(a.outer->ctx, level, message);
}

std::int32_t log_enabled_in_init(void *ctx, std::int32_t level) {
  auto &a = *static_cast<Attempt *>(ctx);
  const std::lock_guard lock(a.mutex);
  return a.outer != nullptr ? a.outer->log_enabled(a.outer->ctx, level) : 0;
}

void give_host(Attempt &a, const bh_host *outer) {
  a.outer = outer;
  if (outer != nullptr) {
    a.host_name.assign(outer->name.p == nullptr ? "" : outer->name.p, outer->name.n);
    a.host_version.assign(outer->version.p == nullptr ? "" : outer->version.p, outer->version.n);
  }
  a.host.size = sizeof a.host;
  a.host.abi_minor = BH_ABI_MINOR;
  a.host.ctx = &a;
  a.host.name = {a.host_name.data(), a.host_name.size()};
  a.host.version = {a.host_version.data(), a.host_version.size()};
  a.host.get_ext = [](void *, const char *) -> const void * { return nullptr; };
  a.host.log = log_in_init;
  a.host.log_enabled = log_enabled_in_init;
}

// Starts the next phase of loading. Returns false if the attempt has been abandoned; in that case,
// no more of the plugin's code may be called.
bool enter(Attempt &a, Phase phase) {
  const std::lock_guard lock(a.mutex);
  if (a.abandoned && a.phase == Phase::constructors)
    // The constructors were slow, but did not hang.
    set_stuck({});
  a.phase = phase;
  return !a.abandoned;
}

// Runs the plugin's code. Any step may hang.
std::optional<Error> run_steps(Attempt &a) {
  if (a.fd.get() >= 0) {
    const auto fn = map_library(std::move(a.fd), a.status, a.sealed_sha256);
    if (!fn) return fn.error();
    a.entry_fn = *fn;
  }
  if (!enter(a, Phase::entry)) return Error{BH_E_TIMEOUT, {}};
  const bh_entry *entry = a.entry_fn();
  auto plugins = check_entry(entry);
  if (!plugins) return plugins.error();
  if (!enter(a, Phase::init)) return Error{BH_E_TIMEOUT, {}};
  bh_error error{};
  error.size = sizeof error;
  const bh_status status = entry->init(&a.host, &error);
  if (status != BH_OK) {
    return Error{status < 0 ? status : BH_E_INTERNAL,
                 "failed to initialize: " + error_text(error, "status " + std::to_string(status) +
                                                                  " without an error message")};
  }
  const std::lock_guard lock(a.mutex);
  a.entry = entry;
  a.plugins = std::move(*plugins);
  return std::nullopt;
}

void run_attempt(Attempt &a) {
  std::optional<Error> error;
  try {
    error = run_steps(a);
  } catch (const std::exception &e) {
    error =
        Error{BH_E_INTERNAL, "threw an exception while loading: " + bh::one_line(e.what(), 256)};
  } catch (...) {
    error = Error{BH_E_INTERNAL, "threw an exception while loading"};
  }
  const std::lock_guard lock(a.mutex);
  a.error = std::move(error);
  a.finished = true;
  a.changed.notify_all();
}

Result<void> start_helper(const std::shared_ptr<Attempt> &a) {
  // The helper thread blocks all signals, so that signals are delivered only to other threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Result<void> started;
  try {
    std::thread([a] { run_attempt(*a); }).detach();
  } catch (const std::system_error &e) {  // the limit for processes was reached
    started = fail(BH_E_LIMIT, std::string("cannot create a thread to load it: ") + e.what());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

// Runs the plugin's code on a helper thread, and waits until it has finished or the timeout
// expires.
Result<void> attempt(const std::shared_ptr<Attempt> &a, std::uint64_t timeout_ms) {
  if (auto started = start_helper(a); !started) return started;
  std::unique_lock lock(a->mutex);
  const auto limit = std::chrono::milliseconds(std::min<std::uint64_t>(timeout_ms, 3'600'000));
  const bool in_time = a->changed.wait_for(lock, limit, [&] { return a->finished; });
  a->outer = nullptr;
  if (in_time) {
    if (const auto &error = a->error) return std::unexpected(*error);
    return {};
  }
  a->abandoned = true;
  static constexpr const char *steps[] = {"its static constructors", "its entry function", "init"};
  std::string text = std::string(hang_words) + steps[static_cast<int>(a->phase)] + " within " +
                     std::to_string(timeout_ms) + " ms";
  if (a->phase == Phase::constructors) {
    set_stuck(a->plugin);
    text += "; it holds the dynamic linker's lock, so this process cannot load further plugins";
  }
  return fail(BH_E_TIMEOUT, std::move(text));
}

std::unexpected<Error> about(const std::string &plugin, const std::string &path,
                             const Error &error) {
  const bool said = path.empty() || error.text.find(path) != std::string::npos;
  return fail(error.code, "plugin " + bh::one_line(plugin, 256) +
                              (said ? "" : " (" + bh::one_line(path, 1024) + ")") + ": " +
                              error.text);
}

struct Place {
  std::string name, folder;
  std::string above = {};  // set if `folder` is the plugin's own folder in this plugin folder
  std::string path() const { return folder + "/" + name + ".so"; }
};

Result<Place> place_of(const std::string &plugin, const LoadOptions &options) {
  namespace fs = std::filesystem;
  if (plugin.find('/') != std::string::npos) {
    const fs::path path(plugin);
    Place place{path.stem().string(), path.parent_path().string()};
    if (path.extension() != ".so" || !is_plain_name(place.name)) {
      return fail(
          BH_E_INVALID,
          "a path must end in NAME.so, where NAME has 1 to 64 characters from a-z, 0-9 and '-'");
    }
    if (place.folder.size() > 1 && place.folder.back() == '/') place.folder.pop_back();
    return place;
  }
  if (!is_plain_name(plugin)) {
    return fail(BH_E_INVALID,
                "a plugin must be given as a path, or as a name of 1 to 64 characters from a-z, "
                "0-9 and '-'");
  }
  std::string looked;
  for (const std::string &dir : options.dirs) {
    for (Place place : {Place{plugin, dir}, Place{plugin, dir + "/" + plugin, dir}}) {
      struct stat status{};
      // lstat() is used so that symbolic links are found, too. They are then rejected with an error
      // instead of being skipped.
      if (::lstat(place.path().c_str(), &status) == 0) return place;
    }
    looked += (looked.empty() ? "" : ", ") + bh::one_line(dir, 256);
  }
  return fail(BH_E_NOT_FOUND,
              plugin + ".so was not found in " + (looked.empty() ? "any folder" : looked));
}

Result<void> check_manifest(const Manifest &manifest, const Place &place) {
  if (manifest.id != place.name) {
    return fail(BH_E_INVALID,
                "its manifest belongs to another plugin (id = \"" + manifest.id + "\")");
  }
  return check_abi(manifest.abi_major, manifest.abi_minor_needed);
}

Result<void> check_exports(const std::vector<std::string> &exports) {
  static constexpr std::string_view prefix = "bh_plugin_entry_v";
  std::string others;
  for (const std::string &name : exports) {
    if (name == BH_PLUGIN_ENTRY_SYMBOL) return {};
    if (name.starts_with(prefix)) others += (others.empty() ? "" : ", ") + bh::one_line(name, 64);
  }
  if (others.empty()) {
    return fail(BH_E_INVALID, "is not a Bulkhead plugin: it exports no " BH_PLUGIN_ENTRY_SYMBOL);
  }
  return fail(BH_E_ABI, "uses a different major version of the plugin ABI (it exports " + others +
                            ", but this Bulkhead uses " +
                            abi_version(BH_ABI_MAJOR, BH_ABI_MINOR, BH_ABI_RC) +
                            " and requires " BH_PLUGIN_ENTRY_SYMBOL
                            "); rebuild the plugin with the SDK of this Bulkhead");
}

Result<void> check_digest(const std::string &digest, std::string wanted) {
  if (wanted.empty()) return {};
  std::transform(wanted.begin(), wanted.end(), wanted.begin(),
                 [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c + 32) : c; });
  if (digest == wanted) return {};
  return fail(BH_E_DENIED, "does not match the pinned sha256: the file has " + digest +
                               ", the profile has " + bh::one_line(wanted, 64));
}

// Returns true if the open folder is the one in which the program's own plugins are installed.
bool is_program_folder(int folder_fd, const std::string &program_dir) {
  struct stat folder{}, own{};
  return !program_dir.empty() && ::fstat(folder_fd, &folder) == 0 &&
         ::stat(program_dir.c_str(), &own) == 0 && folder.st_dev == own.st_dev &&
         folder.st_ino == own.st_ino;
}

// Opens the folder that contains the library. A folder that others can write to is rejected: they
// could replace the plugin's own folder in it.
Result<OwnedFd> open_folder(const Place &place) {
  if (!place.above.empty()) {
    const auto above = open_trusted_folder(place.above);
    if (!above) return std::unexpected(above.error());
  }
  return open_trusted_folder(place.folder);
}

// Reads the signature file, if there is one.
Result<std::optional<std::string>> read_signature(int folder_fd, const Place &place,
                                                  const std::string &file) {
  std::string folder = place.folder, name = place.name + ".so" + std::string(signature_suffix);
  OwnedFd other;
  if (!file.empty()) {
    const std::filesystem::path path(file);
    folder = path.has_parent_path() ? path.parent_path().string() : ".";
    name = path.filename().string();
    auto opened = open_trusted_folder(folder);
    if (!opened) return std::unexpected(opened.error());
    other = std::move(*opened);
  }
  struct stat status{};
  const auto fd = open_trusted_file(other ? other.get() : folder_fd, folder, name, &status);
  if (!fd && fd.error().code == BH_E_NOT_FOUND && file.empty()) return std::nullopt;
  if (!fd) return std::unexpected(fd.error());
  auto text = read_bounded(fd->get(), folder + "/" + name, kMinisignBytes);
  if (!text) return std::unexpected(text.error());
  return std::optional<std::string>(std::move(*text));
}

// Replaces the file by a sealed copy, and verifies this copy.
Result<void> seal_and_verify(int folder_fd, const Place &place, const LoadOptions &options,
                             CheckedLibrary *checked) {
  const bool in_place = options.is_program_copy || checked->trusted_by_place;
  const PluginTrust &trust = options.trust;
  std::optional<std::string> signature;
  if (!in_place) {
    auto read = read_signature(folder_fd, place, options.signature_file);
    if (!read) return std::unexpected(read.error());
    signature = std::move(*read);
  }
  const bool digests = !trust.revoked_digests.empty() || !trust.quarantined.empty();
  if (in_place && options.sha256.empty()) {
    // A user who can change the file can also change the program, so it needs no sealed copy.
    if (trust.revoked_digests.empty()) return {};
    const auto digest = sha256_of(checked->fd());
    if (!digest) return std::unexpected(digest.error());
    return check_revoked(*digest, trust);
  }
  if (options.sha256.empty() && !digests && !signature && !trust.require_signatures) return {};
  auto copy = sealed_copy(checked->fd());
  if (!copy) return std::unexpected(copy.error());
  const auto digest = sha256_of(copy->get());
  if (!digest) return std::unexpected(digest.error());
  checked->file = std::move(*copy);
  checked->sealed = true;
  checked->sha256 = *digest;
  if (auto ok = check_digest(*digest, options.sha256); !ok) return ok;
  if (auto ok = check_revoked(*digest, trust); !ok) return ok;
  if (in_place) return {};
  if (auto ok = check_quarantine(*digest, trust); !ok) return ok;
  const auto bytes = FileView::of(checked->fd());
  if (!bytes) return std::unexpected(bytes.error());
  auto signer = verify_plugin(checked->manifest, bytes->text(), signature, trust);
  if (!signer) return std::unexpected(signer.error());
  checked->signer = std::move(*signer);
  if (!checked->signer.empty()) checked->signature = std::move(*signature);
  return {};
}

// Performs all checks that do not run the plugin's code.
Result<CheckedLibrary> open_and_check(const Place &place, const LoadOptions &options) {
  CheckedLibrary checked;
  checked.path = place.path();
  const auto folder = open_folder(place);
  if (!folder) return std::unexpected(folder.error());
  auto file = open_trusted_file(folder->get(), place.folder, place.name + ".so", &checked.status);
  if (!file) return std::unexpected(file.error());
  checked.file = std::move(*file);
  checked.trusted_by_place = is_program_folder(folder->get(), options.trust.program_dir);
  auto read = read_manifest_in(folder->get(), place.folder, place.name + ".plugin.toml");
  if (!read) return fail(read.error().code, "its manifest is invalid: " + read.error().text);
  checked.manifest = std::move(*read);
  if (auto ok = check_manifest(checked.manifest, place); !ok) return std::unexpected(ok.error());
  if (auto ok = seal_and_verify(folder->get(), place, options, &checked); !ok)
    return std::unexpected(ok.error());
  struct stat status{};
  if (::fstat(checked.fd(), &status) != 0)
    return fail(BH_E_IO, std::string("cannot be read: ") + bh::error_name(errno));
  if (auto ok = check_elf(checked.fd(), static_cast<std::uint64_t>(status.st_size)); !ok)
    return std::unexpected(ok.error());
  const auto exports = read_exports(checked.fd());
  if (!exports) return std::unexpected(exports.error());
  if (auto ok = check_exports(*exports); !ok) return std::unexpected(ok.error());
  return checked;
}

bool same_ids(std::vector<std::string> a, std::vector<std::string> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  return a == b;
}

std::string joined(const std::vector<std::string> &ids) {
  std::string out;
  for (const std::string &id : ids) out += (out.empty() ? "" : ", ") + id;
  return out;
}

}  // namespace

struct LibraryMaker {
  static Result<void> check_linker() {
    const std::string name = stuck();
    if (name.empty()) return {};
    return fail(BH_E_UNAVAILABLE, "cannot be mapped: the static constructors of plugin " + name +
                                      " still hold the dynamic linker's lock");
  }

  // Creates a Library for an entry whose init has succeeded. `id` selects one of its plugins. If
  // there is no such plugin, the Library's destructor calls deinit.
  static Result<std::shared_ptr<Library>> make(const std::shared_ptr<Attempt> &a,
                                               const std::string &id) {
    std::shared_ptr<Library> library(new Library);
    library->entry_ = a->entry;
    library->init_host_ = a;
    for (PluginDescription &plugin : a->plugins) {
      if (plugin.id == id) library->description_ = std::move(plugin);
    }
    if (library->description_.id.empty()) {
      return fail(BH_E_INVALID, "contains no plugin with the id \"" + id + "\"");
    }
    return library;
  }

  static Result<std::shared_ptr<Library>> load(CheckedLibrary checked, const bh_host *host,
                                               const LoadOptions &options) {
    if (auto ok = check_linker(); !ok) return std::unexpected(ok.error());
    auto a = std::make_shared<Attempt>();
    a->plugin = checked.manifest.id;
    a->fd = std::move(checked.file);
    a->status = checked.status;
    if (checked.sealed) a->sealed_sha256 = checked.sha256;
    give_host(*a, host);
    if (auto ok = attempt(a, options.init_timeout_ms); !ok) return std::unexpected(ok.error());
    auto library = make(a, checked.manifest.id);
    if (!library) return library;
    Library &made = **library;
    made.path_ = std::move(checked.path);
    if (!same_ids(checked.manifest.provides, made.description_.provides)) {
      return fail(BH_E_INVALID, "its manifest declares that it provides " +
                                    joined(checked.manifest.provides) + ", but its code declares " +
                                    joined(made.description_.provides));
    }
    const std::string &version = made.description_.version;
    if (!checked.signer.empty() && !version.empty() && version != checked.manifest.version) {
      return fail(BH_E_INVALID, "its signed manifest has the version " + checked.manifest.version +
                                    ", but its code has the version " + bh::one_line(version, 64));
    }
    made.manifest_ = std::move(checked.manifest);
    return library;
  }

  static Result<std::shared_ptr<Library>> link(const std::string &plugin, bh_plugin_entry_fn entry,
                                               const bh_host *host, const LoadOptions &options) {
    if (entry == nullptr) return fail(BH_E_INVALID, "no entry function");
    auto a = std::make_shared<Attempt>();
    a->plugin = plugin;
    a->entry_fn = entry;
    a->phase = Phase::entry;
    give_host(*a, host);
    if (auto ok = attempt(a, options.init_timeout_ms); !ok) return std::unexpected(ok.error());
    auto library = make(a, plugin);
    if (!library) return library;
    Library &made = **library;
    const PluginDescription &d = made.description_;
    made.manifest_.id = d.id;
    made.manifest_.version = d.version;
    made.manifest_.description = d.name;
    made.manifest_.abi_major = a->entry->abi_major;
    made.manifest_.abi_minor_needed = a->entry->abi_minor_needed;
    made.manifest_.provides = d.provides;
    return library;
  }
};

Result<std::string> schema_of(const CheckedLibrary &checked) {
  constexpr std::size_t most = (1u << 20) + 1;
  auto text = read_section(checked.fd(), BH_SCHEMA_SECTION, most);
  if (!text) return about(checked.manifest.id, checked.path, text.error());
  text->resize(std::min(text->size(), text->find('\0')));
  return text;
}

Result<CheckedLibrary> Library::check(const std::string &plugin, const LoadOptions &options) {
  const auto place = place_of(plugin, options);
  if (!place) return about(plugin, {}, place.error());
  auto checked = open_and_check(*place, options);
  if (!checked) return about(place->name, place->path(), checked.error());
  return checked;
}

Result<std::shared_ptr<Library>> Library::load(CheckedLibrary checked, const bh_host *host,
                                               const LoadOptions &options) {
  const std::string name = checked.manifest.id, path = checked.path;
  auto library = LibraryMaker::load(std::move(checked), host, options);
  if (!library) return about(name, path, library.error());
  return library;
}

Result<std::shared_ptr<Library>> Library::load(const std::string &plugin, const bh_host *host,
                                               const LoadOptions &options) {
  // Checked first, because searching for the file is pointless if no library can be mapped.
  if (auto ok = LibraryMaker::check_linker(); !ok) return about(plugin, {}, ok.error());
  auto checked = check(plugin, options);
  if (!checked) return std::unexpected(checked.error());
  return load(std::move(*checked), host, options);
}

Result<std::shared_ptr<Library>> Library::from_entry(const std::string &plugin,
                                                     bh_plugin_entry_fn entry, const bh_host *host,
                                                     const LoadOptions &options) {
  auto library = LibraryMaker::link(plugin, entry, host, options);
  if (!library) return about(plugin, {}, library.error());
  return library;
}

Result<CheckedLibrary> duplicate(const CheckedLibrary &checked) {
  OwnedFd fd(::fcntl(checked.fd(), F_DUPFD_CLOEXEC, 3));
  if (!fd) return fail(BH_E_LIMIT, checked.path + ": no file descriptor is available");
  CheckedLibrary out;
  out.manifest = checked.manifest;
  out.path = checked.path;
  out.file = std::move(fd);
  out.status = checked.status;
  out.sealed = checked.sealed;
  out.sha256 = checked.sha256;
  out.signer = checked.signer;
  out.signature = checked.signature;
  out.trusted_by_place = checked.trusted_by_place;
  return out;
}

Result<std::shared_ptr<Library>> load_library(const std::string &plugin,
                                              const CheckedLibraries &checked,
                                              const LoadOptions &options) {
  const auto at = checked.find(plugin);
  if (at == checked.end() || !at->second) {
    auto loaded = Library::load(plugin, nullptr, options);
    const bh_status code = loaded ? BH_OK : loaded.error().code;
    const bool inaccessible = code == BH_E_IO || code == BH_E_DENIED || code == BH_E_NOT_FOUND;
    if (inaccessible && at != checked.end()) return std::unexpected(at->second.error());
    return loaded;
  }
  auto copy = duplicate(*at->second);
  if (!copy) return std::unexpected(copy.error());
  return Library::load(std::move(*copy), nullptr, options);
}

Library::~Library() {
  if (entry_ == nullptr) return;
  try {
    entry_->deinit();
  } catch (...) {
    // deinit threw an exception. It is ignored because the code stays mapped anyway.
  }
}

}  // namespace bulkhead
