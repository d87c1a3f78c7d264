#include "plugin/audit_key.hpp"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/text.hpp"
#include "plugin/secrets.hpp"
#include "plugin/text.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view key_name = "ed25519";

bool is_statement(std::string_view text) noexcept {
  return !text.empty() && text.size() <= max_statement_bytes &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

std::unexpected<Error> failed(const std::string &path) {
  return fail(BH_E_IO, path + ": " + bh::error_name(errno));
}

// Locks the folder. The lock must be held while the key is created or a list is written, because
// several gateways may use the same folder.
Result<OwnedFd> lock(const std::string &folder) {
  OwnedFd fd(::open((folder + "/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd || ::flock(fd.get(), LOCK_EX) != 0) return failed(folder + "/.lock");
  return fd;
}

// Returns the 64-byte secret key. Creates it if it does not exist.
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

// ---- lists of signed statements --------------------------------------------------------------

std::string list_folder(const std::string &state_dir) {
  return state_dir + "/audit/signed";
}

// Returns true if an instance with this name can have a list, which is stored in a file with the
// same name. Names with a leading dot are reserved for other files.
bool is_list_name(std::string_view name) noexcept {
  return !name.empty() && name.front() != '.' && name.find('/') == name.npos;
}

template <class T>
bool take_number(std::string_view *text, std::string_view end, T *out) {
  const auto [rest, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  if (error != std::errc()) return false;
  text->remove_prefix(static_cast<std::size_t>(rest - text->data()));
  if (!text->starts_with(end)) return false;
  text->remove_prefix(end.size());
  return true;
}

// Parses "chain C seq N head HASH".
std::optional<SignedPlace> parse_place(std::string_view text) {
  constexpr std::string_view first = "chain ";
  constexpr std::size_t hash_digits = 64;
  SignedPlace out;
  if (!text.starts_with(first)) return std::nullopt;
  text.remove_prefix(first.size());
  if (!take_number(&text, " seq ", &out.chain) || !take_number(&text, " head ", &out.seq)) {
    return std::nullopt;
  }
  const bool hex = text.size() == hash_digits && std::all_of(text.begin(), text.end(), [](char c) {
                     return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                   });
  if (!hex || out.chain == 0 || out.chain > max_audit_chains || out.seq == 0) return std::nullopt;
  out.head = text;
  return out;
}

std::string line_of(const SignedPlace &place) {
  return std::to_string(place.unix_s) + " chain " + std::to_string(place.chain) + " seq " +
         std::to_string(place.seq) + " head " + place.head + "\n";
}

// Returns a shorter list. For each chain, only the first position in each period and the last
// position of the chain are kept.
std::vector<SignedPlace> thinned(const std::vector<SignedPlace> &all, std::uint64_t period_s) {
  std::vector<SignedPlace> out;
  std::map<std::uint32_t, std::size_t> last;  // index of each chain's last position
  for (std::size_t i = 0; i < all.size(); ++i) last[all[i].chain] = i;
  std::map<std::uint32_t, std::uint64_t> periods;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::uint64_t period = 1 + all[i].unix_s / period_s;
    const bool first = std::exchange(periods[all[i].chain], period) != period;
    if (first || last[all[i].chain] == i) out.push_back(all[i]);
  }
  return out;
}

std::string text_of(const std::vector<SignedPlace> &places) {
  std::string out;
  for (const SignedPlace &place : places) out += line_of(place);
  return out;
}

// Shrinks the list to at most half of the maximum size.
Result<void> thin_list(const std::string &folder, const std::string &path,
                       const std::vector<SignedPlace> &all) {
  std::string text = text_of(thinned(all, 3'600));
  if (text.size() > max_audit_list_bytes / 2) text = text_of(thinned(all, 86'400));
  if (text.size() > max_audit_list_bytes / 2) {
    text.erase(0, text.find('\n', text.size() - max_audit_list_bytes / 2) + 1);
  }
  const std::string fresh = folder + "/.new";
  {
    const OwnedFd fd(
        ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
        ::fsync(fd.get()) != 0) {
      return failed(fresh);
    }
  }
  if (::rename(fresh.c_str(), path.c_str()) != 0) return failed(path);
  return {};
}

// Appends a line and syncs the file. On failure, removes what was appended.
Result<void> append_line(const std::string &path, std::string line) {
  const OwnedFd fd(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  struct stat status{};
  if (!fd || ::fstat(fd.get(), &status) != 0) return failed(path);
  char last = '\n';
  // A power failure may have left an incomplete line, which is terminated here.
  if (status.st_size > 0 && ::pread(fd.get(), &last, 1, status.st_size - 1) == 1 && last != '\n') {
    line.insert(0, 1, '\n');
  }
  if (::write(fd.get(), line.data(), line.size()) == static_cast<ssize_t>(line.size()) &&
      ::fdatasync(fd.get()) == 0) {
    return {};
  }
  const int error = errno == 0 ? ENOSPC : errno;
  if (::ftruncate(fd.get(), status.st_size) != 0) return failed(path);
  return fail(BH_E_IO, path + ": " + bh::error_name(error));
}

std::string read_from(const std::string &path, std::uint64_t most, bool *all) {
  *all = true;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) return {};
  const auto size = static_cast<std::uint64_t>(std::max<std::streamoff>(in.tellg(), 0));
  *all = size <= most;
  in.seekg(static_cast<std::streamoff>(size - std::min(size, most)));
  std::ostringstream out;
  out << in.rdbuf();
  return std::move(out).str();
}

std::vector<SignedPlace> places_in(std::string_view text) {
  std::vector<SignedPlace> out;
  for (std::size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1)) {
    if (auto place = parse_signed_line(text.substr(0, end))) out.push_back(std::move(*place));
  }
  return out;
}

// Returns the chain's last signed position, or a position with seq 0 if there is none.
SignedPlace last_signed(const std::string &path, std::uint32_t chain) {
  for (const std::uint64_t most : {std::uint64_t{64} << 10, 2 * max_audit_list_bytes}) {
    bool all = false;
    SignedPlace last;
    for (SignedPlace &place : places_in(read_from(path, most, &all))) {
      if (place.chain == chain && place.seq >= last.seq) last = std::move(place);
    }
    if (last.seq != 0 || all) return last;
  }
  return {};
}

// Adds a position to the list, unless it is already the last signed one. Rejects any other position
// that is not after the last signed one, so no position is signed with two different heads.
Result<void> enlist(const std::string &state_dir, const std::string &instance,
                    const SignedPlace &place) {
  const auto folder = private_folder(state_dir, "audit", "signed");
  if (!folder) return std::unexpected(folder.error());
  const auto held = lock(*folder);
  if (!held) return std::unexpected(held.error());
  const std::string path = *folder + "/" + instance;
  const SignedPlace last = last_signed(path, place.chain);
  if (place.seq == last.seq && place.head == last.head) return {};
  if (place.seq <= last.seq) {
    return fail(BH_E_DENIED, "chain " + std::to_string(place.chain) +
                                 " is already signed up to seq " + std::to_string(last.seq) +
                                 " and cannot be signed for seq " + std::to_string(place.seq) +
                                 ": the session database has lost rows, or " + path +
                                 " belongs to a session database that was removed; to start a new "
                                 "chain, move this file and the session database aside");
  }
  struct stat status{};
  const std::string line = line_of(place);
  if (::stat(path.c_str(), &status) == 0 &&
      static_cast<std::uint64_t>(status.st_size) + line.size() > max_audit_list_bytes) {
    if (auto done = thin_list(*folder, path, signed_places(state_dir, instance)); !done) {
      return done;
    }
  }
  return append_line(path, line);
}

// Writes the public key to a file, so that others can verify signatures.
Result<void> publish(const std::string &state_dir, const AuditSignature &made) {
  const auto folder = private_folder(state_dir, "audit", "supervisor");
  if (!folder) return std::unexpected(folder.error());
  const auto held = lock(*folder);
  if (!held) return std::unexpected(held.error());
  const auto kept = read_secret(*folder, "public-key", 256);
  const std::string hex = bh::hex(made.public_key) + "\n";
  if (kept && *kept == hex) return {};
  return write_secret(*folder, "public-key", hex);
}

}  // namespace

Result<AuditSignature> sign_for_audit(const std::string &state_dir, const std::string &instance,
                                      std::string_view statement) {
  auto place = parse_place(statement);
  if (!is_statement(statement) || !is_list_name(instance) ||
      (statement.starts_with("chain") && !place)) {
    return fail(BH_E_INVALID, "the statement cannot be signed");
  }
  auto key = audit_key(state_dir);
  if (!key) return std::unexpected(key.error());
  AuditSignature out;
  out.unix_s = bh::unix_s();
  out.public_key = key->substr(crypto_sign_SECRETKEYBYTES - crypto_sign_PUBLICKEYBYTES);
  out.signature.resize(crypto_sign_BYTES);
  const std::string message = "bulkhead.audit/1\n" + instance + "\n" + std::to_string(out.unix_s) +
                              "\n" + std::string(statement);
  crypto_sign_detached(reinterpret_cast<unsigned char *>(out.signature.data()), nullptr,
                       reinterpret_cast<const unsigned char *>(message.data()), message.size(),
                       reinterpret_cast<const unsigned char *>(key->data()));
  sodium_memzero(key->data(), key->size());
  if (auto done = publish(state_dir, out); !done) return std::unexpected(done.error());
  if (!place) return out;
  place->unix_s = out.unix_s;
  if (auto done = enlist(state_dir, instance, *place); !done) return std::unexpected(done.error());
  return out;
}

std::optional<SignedPlace> parse_signed_line(std::string_view line) {
  std::uint64_t unix_s = 0;
  if (!take_number(&line, " ", &unix_s)) return std::nullopt;
  auto place = parse_place(line);
  if (place) place->unix_s = unix_s;
  return place;
}

std::vector<SignedPlace> signed_places(const std::string &state_dir, const std::string &instance) {
  if (!is_list_name(instance)) return {};
  bool all = false;
  return places_in(
      read_from(list_folder(state_dir) + "/" + instance, 2 * max_audit_list_bytes, &all));
}

std::vector<std::string> signed_instances(const std::string &state_dir) {
  std::vector<std::string> out;
  std::error_code ec;
  for (std::filesystem::directory_iterator at(list_folder(state_dir), ec), end; !ec && at != end;
       at.increment(ec)) {
    std::string name = at->path().filename().native();
    if (is_list_name(name)) out.push_back(std::move(name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace bulkhead
