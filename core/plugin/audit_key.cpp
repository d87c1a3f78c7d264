#include "plugin/audit_key.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "base/owned_fd.hpp"
#include "plugin/secrets.hpp"
#include "plugin/text.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view key_name = "ed25519";

std::string hex_of(std::string_view bytes) {
  std::string out(2 * bytes.size() + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), reinterpret_cast<const unsigned char *>(bytes.data()),
                 bytes.size());
  out.pop_back();
  return out;
}

bool is_statement(std::string_view text) noexcept {
  return !text.empty() && text.size() <= max_statement_bytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::unexpected<Error> failed(const std::string &path) {
  return fail(BH_E_IO, path + ": " + error_name(errno));
}

// Held while the key is made or the list is written: gateways share both.
Result<OwnedFd> lock(const std::string &folder) {
  OwnedFd fd(::open((folder + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX) != 0) return failed(folder + "/.lock");
  return fd;
}

// The secret key, 64 bytes.
Result<std::string> audit_key(const std::string &state_dir) {
  const auto folder = private_folder(state_dir, "secrets", "@audit");
  if (!folder) return std::unexpected(folder.error());
  const auto held = lock(*folder);
  if (!held) return std::unexpected(held.error());
  auto key = read_secret(*folder, key_name, crypto_sign_SECRETKEYBYTES);
  if (!key && key.error().code != BH_E_NOT_FOUND) return key;
  if (key && key->size() == crypto_sign_SECRETKEYBYTES) return key;
  if (key) return fail(BH_E_IO, *folder + "/" + std::string(key_name) + " is damaged");
  std::string fresh(crypto_sign_SECRETKEYBYTES, '\0');
  unsigned char public_half[crypto_sign_PUBLICKEYBYTES];
  crypto_sign_keypair(public_half, reinterpret_cast<unsigned char *>(fresh.data()));
  if (auto done = write_secret(*folder, key_name, fresh); !done) {
    return std::unexpected(done.error());
  }
  return fresh;
}

Result<void> append_line(const std::string &path, const std::string &line) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) + line.size() > max_audit_list_bytes) {
    ::rename(path.c_str(), (path + ".1").c_str());
  }
  const OwnedFd fd(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return failed(path);
  }
  return {};
}

// What verification starts from: the public half, and what was signed.
Result<void> publish(const std::string &state_dir, const std::string &instance,
                     std::string_view statement, const AuditSignature &made) {
  const auto folder = private_folder(state_dir, "audit", "supervisor");
  if (!folder) return std::unexpected(folder.error());
  const auto held = lock(*folder);
  if (!held) return std::unexpected(held.error());
  const auto kept = read_secret(*folder, "public-key", 256);
  const std::string hex = hex_of(made.public_key) + "\n";
  if (!kept || *kept != hex) {
    if (auto done = write_secret(*folder, "public-key", hex); !done) return done;
  }
  return append_line(*folder + "/signed", std::to_string(made.unix_s) + " " + instance + " " +
                                              std::string(statement) + "\n");
}

}  // namespace

Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement) {
  if (!is_statement(statement)) return fail(BH_E_INVALID, "that cannot be signed");
  auto key = audit_key(state_dir);
  if (!key) return std::unexpected(key.error());
  AuditSignature out;
  out.unix_s = static_cast<std::uint64_t>(std::time(nullptr));
  out.public_key = key->substr(crypto_sign_SECRETKEYBYTES - crypto_sign_PUBLICKEYBYTES);
  out.signature.resize(crypto_sign_BYTES);
  const std::string message = "bulkhead.audit/1\n" + instance + "\n" + std::to_string(out.unix_s) +
                              "\n" + std::string(statement);
  crypto_sign_detached(reinterpret_cast<unsigned char *>(out.signature.data()), nullptr,
                       reinterpret_cast<const unsigned char *>(message.data()), message.size(),
                       reinterpret_cast<const unsigned char *>(key->data()));
  sodium_memzero(key->data(), key->size());
  if (auto done = publish(state_dir, instance, statement, out); !done) {
    return std::unexpected(done.error());
  }
  return out;
}

}  // namespace bulkhead
