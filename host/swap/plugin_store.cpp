#include "swap/plugin_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/write_all.hpp"
#include "bulkhead/cpp/text.hpp"
#include "plugin/plugin_file.hpp"
#include "plugin/plugin_signature.hpp"
#include "plugin/secrets.hpp"
#include "profile/sha256.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view manifest_suffix = ".plugin.toml";
constexpr std::size_t max_manifest_bytes = 64u << 10;

std::unexpected<Error> io_error(const std::string &what) {
  return fail(BH_E_IO, what + ": " + bh::error_name(errno));
}

// Reads at most `most` bytes.
Result<std::string> read_text(const std::string &path, std::size_t most) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd) return io_error(path);
  std::string out(most + 1, '\0');
  std::size_t size = 0;
  while (size < out.size()) {
    const ssize_t n = ::read(fd.get(), out.data() + size, out.size() - size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error(path);
    if (n == 0) break;
    size += static_cast<std::size_t>(n);
  }
  if (size > most) return fail(BH_E_LIMIT, path + " is too large");
  out.resize(size);
  return out;
}

// Creates a file that is complete as soon as it has its name.
class NewFile {
 public:
  NewFile(const std::string &folder, const std::string &name)
      : path_(folder + "/" + name),
        temporary_(folder + "/." + name + "." + std::to_string(::getpid())),
        fd_(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
                   0600)) {}
  ~NewFile() {
    if (!done_) ::unlink(temporary_.c_str());
  }
  NewFile(const NewFile &) = delete;
  NewFile &operator=(const NewFile &) = delete;

  bool add(std::string_view bytes) { return fd_ && write_all(fd_.get(), bytes); }
  // Makes the file readable by the users of all compartments. A plugin's code is not secret.
  Result<void> finish() {
    if (!fd_ || ::fchmod(fd_.get(), 0444) != 0 ||
        ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return io_error(path_);
    }
    done_ = true;
    return {};
  }

 private:
  const std::string path_, temporary_;
  const OwnedFd fd_;
  bool done_ = false;
};

Result<void> copy_text(const std::string &text, const std::string &folder,
                       const std::string &name) {
  NewFile file(folder, name);
  if (!file.add(text)) return io_error(folder + "/" + name);
  return file.finish();
}

Result<void> copy_file(int from, const std::string &folder, const std::string &name) {
  NewFile file(folder, name);
  std::array<char, 64 * 1024> piece;
  for (off_t offset = 0;;) {
    const ssize_t n = ::pread(from, piece.data(), piece.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return io_error("cannot read the plugin");
    if (n == 0) return file.finish();
    if (!file.add({piece.data(), static_cast<std::size_t>(n)})) {
      return io_error(folder + "/" + name);
    }
    offset += n;
  }
}

// Returns the folder's descriptor with a lock, or an invalid descriptor.
OwnedFd lock_folder(const std::string &folder, int operation) {
  OwnedFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && ::flock(fd.get(), operation | LOCK_NB) != 0) fd.reset();
  return fd;
}

}  // namespace

Result<OpenPlugin> open_plugin(const std::string &plugin, const LoadOptions &options) {
  auto checked = Library::check(plugin, options);
  if (!checked) return std::unexpected(checked.error());
  const std::string stem = checked->path.substr(0, checked->path.rfind(".so"));
  if (static_cast<std::uint64_t>(checked->status.st_size) > max_plugin_bytes) {
    return fail(BH_E_LIMIT, checked->path + " is larger than 256 MiB");
  }
  auto text = read_text(stem + std::string(manifest_suffix), max_manifest_bytes);
  if (!text) return std::unexpected(text.error());
  if (sha256_of_text(*text) != checked->manifest.sha256)
    return fail(BH_E_INVALID,
                stem + std::string(manifest_suffix) + " was changed while it was read; try again");
  return OpenPlugin{std::move(*checked), std::move(*text)};
}

Result<StoredPlugin> store_plugin(const std::string &state_dir, const OpenPlugin &plugin) {
  const auto digest = sha256_of(plugin.library.fd());
  if (!digest) return std::unexpected(digest.error());
  const auto folder =
      private_folder(state_dir, std::string(plugin_store_folder.substr(1)),
                     sha256_hex(*digest + plugin.manifest_text + plugin.library.signature));
  if (!folder) return std::unexpected(folder.error());
  StoredPlugin out;
  out.lock = lock_folder(*folder, LOCK_SH);
  struct stat status{};
  const bool there = out.lock && ::fstat(out.lock.get(), &status) == 0 && status.st_nlink > 0;
  if (!there) return fail(BH_E_UNAVAILABLE, *folder + " is being removed; try again");
  const std::string name = plugin.library.manifest.id;
  LoadOptions exact;
  exact.sha256 = *digest;
  out.path = *folder + "/" + name + ".so";
  auto copy = Library::check(out.path, exact);
  const std::string manifest = *folder + "/" + name + std::string(manifest_suffix);
  const auto text = read_text(manifest, max_manifest_bytes);
  if (!copy || !text || *text != plugin.manifest_text) {
    if (auto done = copy_text(plugin.manifest_text, *folder, name + std::string(manifest_suffix));
        !done) {
      return std::unexpected(done.error());
    }
    const std::string signature = name + ".so" + std::string(signature_suffix);
    if (!plugin.library.signature.empty()) {
      if (auto done = copy_text(plugin.library.signature, *folder, signature); !done)
        return std::unexpected(done.error());
    }
    // The library is last, because it marks the copy as complete.
    if (auto done = copy_file(plugin.library.fd(), *folder, name + ".so"); !done) {
      return std::unexpected(done.error());
    }
    copy = Library::check(out.path, exact);
  }
  if (!copy) return std::unexpected(copy.error());
  out.id = name;
  out.version = copy->manifest.version;
  out.sha256 = *digest;
  out.signer = plugin.library.signer;
  out.exclusive = copy->manifest.exclusive;
  out.is_program_copy = plugin.library.trusted_by_place;
  return out;
}

void remove_unused_plugins(const std::string &state_dir) {
  std::error_code error;
  const std::filesystem::path store = state_dir + std::string(plugin_store_folder);
  for (std::filesystem::directory_iterator at(store, error), end; !error && at != end;
       at.increment(error)) {
    const OwnedFd lock = lock_folder(at->path().string(), LOCK_EX);
    std::error_code ignored;
    if (lock) std::filesystem::remove_all(at->path(), ignored);
  }
}

}  // namespace bulkhead::program
