#include "state/npm_cache.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "base/base64.hpp"
#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_lock_bytes = 16u << 20;
constexpr std::size_t most_installs = 1'000;

// Returns true for "@scope/name" and "name", and false for URLs, files and relative paths.
bool package_name(std::string_view name) {
  if (name.empty() || name.size() > 214) return false;
  const std::size_t slash = name.find('/');
  if ((name.front() == '@') != (slash != name.npos)) return false;
  if (slash != name.npos && name.find('/', slash + 1) != name.npos) return false;
  for (const std::string_view part :
       {name.substr(0, slash), slash == name.npos ? name : name.substr(slash + 1)}) {
    if (part.empty() || part.front() == '.' || part == "@") return false;
  }
  for (const char c : name) {
    const bool good =
        bh::is_letter_or_digit(c) || std::string_view("-_.~@/").find(c) != std::string_view::npos;
    if (!good) return false;
  }
  return true;
}

// Returns the content of a regular file, or nullopt if the file is larger than `most` or cannot be
// read.
std::optional<std::string> read_file(const std::string &path, std::uint64_t most) {
  const OwnedFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat about{};
  if (!fd || ::fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) return std::nullopt;
  if (static_cast<std::uint64_t>(about.st_size) > most) return std::nullopt;
  std::string out(static_cast<std::size_t>(about.st_size), '\0');
  std::size_t have = 0;
  while (have < out.size()) {
    const ssize_t n = ::read(fd.get(), out.data() + have, out.size() - have);
    if (n <= 0) return std::nullopt;
    have += static_cast<std::size_t>(n);
  }
  return out;
}

// Converts "sha512-BASE64" to hex. Returns an empty string for other text.
std::string hex_of(std::string_view integrity) {
  constexpr std::string_view kind = "sha512-";
  if (!integrity.starts_with(kind)) return {};
  integrity.remove_prefix(kind.size());
  std::string bytes;
  if (!decode_base64(integrity, sodium_base64_VARIANT_ORIGINAL, &bytes) ||
      bytes.size() != crypto_hash_sha512_BYTES) {
    return {};
  }
  return bh::hex(bytes);
}

bool has_digest(std::string_view content, const std::string &hex) {
  std::array<unsigned char, crypto_hash_sha512_BYTES> bytes{};
  crypto_hash_sha512(bytes.data(), reinterpret_cast<const unsigned char *>(content.data()),
                     content.size());
  std::string is(2 * bytes.size() + 1, '\0');
  ::sodium_bin2hex(is.data(), is.size(), bytes.data(), bytes.size());
  is.pop_back();
  return is == hex;
}

// Adds the digests of all packages that an npm lock file lists.
void add_digests(const std::string &lock, std::set<std::string> *out) {
  if (!mcp::valid_json(lock) || !lock.starts_with('{')) return;
  mcp::for_each_member(mcp::member(lock, "packages"),
                       [&all = *out](std::string_view, std::string_view package) {
                         const std::string_view token = mcp::member(package, "integrity");
                         std::string scratch;
                         if (token.starts_with('"')) {
                           std::string hex = hex_of(mcp::unquote(token, &scratch));
                           if (!hex.empty()) all.insert(std::move(hex));
                         }
                         return all.size() < most_npm_packages;
                       });
}

// Returns the digests of all packages that npx installed for this package.
std::set<std::string> digests_of(const std::string &package, const std::string &cache) {
  std::set<std::string> out;
  std::error_code error;
  std::size_t seen = 0;
  for (fs::directory_iterator at(cache + "/_npx", error), end; !error && at != end;
       at.increment(error)) {
    if (++seen > most_installs) break;
    const std::string modules = at->path().string() + "/node_modules";
    std::error_code ignored;
    if (!fs::exists(modules + "/" + package + "/package.json", ignored)) continue;
    if (const auto lock = read_file(modules + "/.package-lock.json", most_lock_bytes)) {
      add_digests(*lock, &out);
    }
  }
  return out;
}

// Opens a subdirectory, and creates it if it does not exist. Does not follow symbolic links.
OwnedFd enter(const OwnedFd &folder, const std::string &name) {
  if (::mkdirat(folder.get(), name.c_str(), 0700) != 0 && errno != EEXIST) return {};
  return OwnedFd(
      ::openat(folder.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

bool write_new(const OwnedFd &folder, const std::string &name, std::string_view content) {
  const OwnedFd fd(::openat(folder.get(), name.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return false;
  while (!content.empty()) {
    const ssize_t n = ::write(fd.get(), content.data(), content.size());
    if (n <= 0) {
      ::unlinkat(folder.get(), name.c_str(), 0);  // npm must never find a partial file
      return false;
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string npx_package(const ServerDef &definition) {
  const std::string_view command = definition.command;
  if (command.substr(command.rfind('/') + 1) != "npx") return {};
  std::string_view spec;
  const auto &args = definition.args;
  for (std::size_t i = 0; i < args.size() && spec.empty(); ++i) {
    const std::string_view arg = args[i];
    constexpr std::string_view with = "--package=";
    if (arg.starts_with(with)) {
      spec = arg.substr(with.size());
    } else if (arg == "-p" || arg == "--package") {
      if (++i < args.size()) spec = args[i];
    } else if (!arg.starts_with('-')) {
      spec = arg;
    }
  }
  const std::size_t version = spec.find('@', 1);
  const std::string_view name = spec.substr(0, version);
  return package_name(name) ? std::string(name) : std::string();
}

NpmCopied copy_npm_packages(const std::string &package, const std::string &cache,
                            const std::string &folder) {
  NpmCopied out;
  if (!package_name(package)) return out;
  const std::set<std::string> digests = digests_of(package, cache);
  if (digests.empty()) return out;
  OwnedFd to(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  for (const char *name : {"npm", "_cacache", "content-v2", "sha512"}) {
    if (to) to = enter(to, name);
  }
  if (!to) return out;
  for (const std::string &hex : digests) {
    const std::string first = hex.substr(0, 2), second = hex.substr(2, 2), rest = hex.substr(4);
    const auto content =
        read_file(cache + "/_cacache/content-v2/sha512/" + first + "/" + second + "/" + rest,
                  most_npm_package_bytes);
    if (!content || out.bytes + content->size() > most_npm_bytes) continue;
    if (!has_digest(*content, hex)) continue;
    const OwnedFd one = enter(to, first);
    const OwnedFd two = one ? enter(one, second) : OwnedFd();
    if (!two || !write_new(two, rest, *content)) continue;
    ++out.packages;
    out.bytes += content->size();
  }
  return out;
}

}  // namespace bulkhead::program
