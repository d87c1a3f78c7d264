#include "sources/approval_store.hpp"

#include <fcntl.h>
#include <sodium/core.h>
#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/randombytes.h>
#include <sodium/utils.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <optional>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/json.hpp"
#include "common/paths.hpp"
#include "common/private_file.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

using Key = std::array<unsigned char, crypto_auth_hmacsha256_KEYBYTES>;

// ---- serialization ---------------------------------------------------------------------------

// Returns the text that is covered by the seal: the approval's JSON members, without the braces.
std::string members_of(const Approval &approval) {
  std::string out = R"("file":)";
  bh::json::append_quoted(&out, approval.file);
  bh::json::append_member(&out, "server", approval.server);
  bh::json::append_member(&out, "sha256", approval.digest);
  bh::json::append_member(&out, "approved_at", approval.approved_at);
  bh::json::append_member(&out, "tools", approval.tools);
  bh::json::append_member(&out, "findings", approval.findings);
  return out;
}

std::string seal_of(const Approval &approval, const Key &key) {
  const std::string text = members_of(approval);
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> seal;
  crypto_auth_hmacsha256(seal.data(), reinterpret_cast<const unsigned char *>(text.data()),
                         text.size(), key.data());
  std::string out(2 * seal.size() + 1, '\0');
  sodium_bin2hex(out.data(), out.size(), seal.data(), seal.size());
  out.pop_back();
  return out;
}

std::vector<std::string> texts_of(std::string_view object, std::string_view key) {
  std::vector<std::string> out;
  const std::string_view array = mcp::member(object, key);
  if (!array.starts_with('[')) return out;
  mcp::for_each_item(array, [&out](std::string_view item) {
    std::string scratch;
    if (item.starts_with('"')) out.emplace_back(mcp::unquote(item, &scratch));
  });
  return out;
}

// Parses an approval. Returns nullopt if it is malformed or its seal is invalid.
std::optional<Approval> opened(std::string_view object, const Key &key) {
  if (!object.starts_with('{')) return std::nullopt;
  Approval out;
  out.file = member_text(object, "file");
  out.server = member_text(object, "server");
  out.digest = member_text(object, "sha256");
  const std::string_view at = mcp::member(object, "approved_at");
  std::from_chars(at.data(), at.data() + at.size(), out.approved_at);
  out.tools = texts_of(object, "tools");
  out.findings = texts_of(object, "findings");
  const std::string seal = member_text(object, "seal"), right = seal_of(out, key);
  const bool good =
      seal.size() == right.size() && sodium_memcmp(seal.data(), right.data(), right.size()) == 0;
  if (!good) return std::nullopt;
  return out;
}

Result<Key> read_key(const std::string &folder) {
  const std::string path = folder + "/key";
  auto text = read_private(path, crypto_auth_hmacsha256_KEYBYTES);
  if (!text) return std::unexpected(text.error());
  Key key;
  if (text->size() != key.size()) return fail(BH_E_INVALID, path + " is not a valid key");
  std::copy(text->begin(), text->end(), key.begin());
  return key;
}

Result<Key> make_key(const std::string &folder) {
  if (::sodium_init() < 0) return fail(BH_E_INTERNAL, "cannot initialize libsodium");
  Key key;
  crypto_auth_hmacsha256_keygen(key.data());
  const std::string_view text(reinterpret_cast<const char *>(key.data()), key.size());
  if (auto written = write_private(folder, "key", text); !written) {
    return std::unexpected(written.error());
  }
  return key;
}

}  // namespace

ApprovalStore::ApprovalStore() : folder_(default_state_dir() + "/approvals") {}

ApprovalStore::Content ApprovalStore::read() const {
  Content out;
  const std::string path = folder_ + "/servers.json";
  auto text = read_private(path, max_bytes);
  if (!text) {
    if (text.error().code != BH_E_NOT_FOUND) out.problem = text.error().text;
    return out;
  }
  const auto key = read_key(folder_);
  if (!key) {
    out.problem = key.error().text;
    return out;
  }
  const std::string_view list =
      mcp::valid_json(*text) ? mcp::member(*text, "approvals") : std::string_view();
  if (!list.starts_with('[')) {
    out.problem = path + " is not a valid list of approvals";
    return out;
  }
  std::size_t bad = 0;
  mcp::for_each_item(list, [&](std::string_view item) {
    auto approval = opened(item, *key);
    if (approval) {
      out.approvals.push_back(std::move(*approval));
    } else {
      ++bad;
    }
  });
  if (bad > 0) {
    out.problem = path + ": " + std::to_string(bad) +
                  (bad == 1 ? " approval was" : " approvals were") +
                  " not made by `bulkhead approve` and " + (bad == 1 ? "is" : "are") + " ignored";
  }
  return out;
}

std::set<std::string, std::less<>> ApprovalStore::digests(std::string_view file,
                                                          std::string *problem) const {
  std::set<std::string, std::less<>> out;
  Content content = read();
  for (const Approval &approval : content.approvals) {
    if (approval.file == file) out.insert(approval.digest);
  }
  if (!content.problem.empty()) *problem = std::move(content.problem);
  return out;
}

template <class Change>
Result<void> ApprovalStore::update(Change change) const {
  if (auto made = make_private_dir(folder_); !made) return made;
  // The lock prevents a concurrent update from overwriting this one.
  const OwnedFd lock(::open((folder_ + "/lock").c_str(),
                            O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) {
    return fail(BH_E_IO, describe_errno(folder_ + "/lock", errno));
  }
  auto key = read_key(folder_);
  // If the key is missing, damaged or belongs to another user, all seals are invalid anyway, so a
  // new key is created. If the key cannot be read for a temporary reason, such as a lack of
  // descriptors or a disk error, it is not replaced.
  const bool lost =
      !key && (key.error().code == BH_E_NOT_FOUND || key.error().code == BH_E_DENIED ||
               key.error().code == BH_E_INVALID || key.error().code == BH_E_LIMIT);
  if (lost) key = make_key(folder_);
  if (!key) return std::unexpected(key.error());
  Content content = read();
  change(content.approvals);
  std::string text = R"({"approvals":[)";
  for (const Approval &approval : content.approvals) {
    text += (text.ends_with('[') ? "\n{" : ",\n{") + members_of(approval) + R"(,"seal":")" +
            seal_of(approval, *key) + "\"}";
  }
  text += "\n]}\n";
  if (text.size() > max_bytes) {
    return fail(BH_E_LIMIT, folder_ + "/servers.json would be larger than " +
                                std::to_string(max_bytes) +
                                " bytes; remove approvals with `bulkhead revoke`");
  }
  return write_private(folder_, "servers.json", text);
}

Result<void> ApprovalStore::put(Approval approval) const {
  return update([&](std::vector<Approval> &all) {
    std::erase_if(all, [&](const Approval &old) {
      return old.file == approval.file && old.server == approval.server;
    });
    all.push_back(std::move(approval));
  });
}

Result<std::size_t> ApprovalStore::remove(std::string_view file, std::string_view server) const {
  std::size_t removed = 0;
  if (read().approvals.empty()) return removed;  // avoids creating the directory
  auto done = update([&](std::vector<Approval> &all) {
    removed = std::erase_if(all, [&](const Approval &old) {
      return (file.empty() || old.file == file) && (server.empty() || old.server == server);
    });
  });
  if (!done) return std::unexpected(done.error());
  return removed;
}

}  // namespace bulkhead::program
