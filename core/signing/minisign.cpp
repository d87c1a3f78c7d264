#include "signing/minisign.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "base/base64.hpp"
#include "bulkhead/cpp/text.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view kUntrusted = "untrusted comment:";
constexpr std::string_view kTrusted = "trusted comment: ";

struct KeyBytes {
  char algorithm[2];
  std::uint8_t id[8];
  std::uint8_t key[32];
};
struct SignatureBytes {
  char algorithm[2];
  std::uint8_t id[8];
  std::uint8_t signature[crypto_sign_BYTES];
};
static_assert(sizeof(KeyBytes) == 42 && sizeof(SignatureBytes) == 74);

// Decodes padded base64. Returns false if the result does not fill *out exactly.
template <class T>
bool decode(std::string_view text, T *out) {
  std::string bytes;
  if (!decode_base64(text, sodium_base64_VARIANT_ORIGINAL, &bytes) || bytes.size() != sizeof(T)) {
    return false;
  }
  std::memcpy(out, bytes.data(), sizeof(T));
  return true;
}

// Removes the first line from the text and returns it without its line ending.
std::optional<std::string_view> consume_line(std::string_view *text) {
  if (text->empty()) return std::nullopt;
  const std::size_t end = std::min(text->find('\n'), text->size());
  std::string_view line = text->substr(0, end);
  text->remove_prefix(std::min(end + 1, text->size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

bool is_algorithm(const char (&two)[2], std::string_view name) {
  return std::string_view(two, 2) == name;
}

struct Parts {
  SignatureBytes signature;
  std::string_view trusted_comment;
  std::uint8_t global[crypto_sign_BYTES];
};

bool parse(std::string_view text, Parts *out) {
  if (text.size() > kMinisignBytes) return false;
  const auto comment = consume_line(&text);
  const auto signature = consume_line(&text);
  const auto trusted = consume_line(&text);
  const auto global = consume_line(&text);
  if (!comment || !signature || !trusted || !global || !text.empty()) return false;
  if (!comment->starts_with(kUntrusted) || !trusted->starts_with(kTrusted)) return false;
  out->trusted_comment = trusted->substr(kTrusted.size());
  return decode(*signature, &out->signature) && decode(*global, &out->global) &&
         (is_algorithm(out->signature.algorithm, "Ed") ||
          is_algorithm(out->signature.algorithm, "ED"));
}

std::string id_text(const std::uint8_t *id) {
  // minisign displays the ID as a number whose first byte is the least significant.
  const std::string reversed(std::make_reverse_iterator(id + 8), std::make_reverse_iterator(id));
  std::string out = bh::hex(reversed);
  for (char &c : out) c = c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

std::unexpected<Error> no_signature() {
  return fail(BH_E_INVALID, "its .minisig file is not a minisign signature");
}

bool verifies(const std::uint8_t *signature, const void *bytes, std::size_t size,
              const MinisignKey &key) {
  return crypto_sign_verify_detached(signature, static_cast<const unsigned char *>(bytes), size,
                                     key.key.data()) == 0;
}

bool signed_by(std::string_view bytes, const Parts &parts, const MinisignKey &key) {
  const std::uint8_t *signature = parts.signature.signature;
  if (is_algorithm(parts.signature.algorithm, "Ed"))
    return verifies(signature, bytes.data(), bytes.size(), key);
  std::uint8_t hash[crypto_generichash_BYTES_MAX];
  crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char *>(bytes.data()),
                     bytes.size(), nullptr, 0);
  return verifies(signature, hash, sizeof hash, key);
}

bool comment_signed_by(const Parts &parts, const MinisignKey &key) {
  std::string text(reinterpret_cast<const char *>(parts.signature.signature),
                   sizeof parts.signature.signature);
  text += parts.trusted_comment;
  return verifies(parts.global, text.data(), text.size(), key);
}

}  // namespace

Result<std::vector<MinisignKey>> read_minisign_keys(std::string_view text) {
  std::vector<MinisignKey> out;
  if (text.size() > kMinisignBytes) return fail(BH_E_INVALID, "the key file is too large");
  while (const auto line = consume_line(&text)) {
    if (line->empty() || line->starts_with(kUntrusted)) continue;
    KeyBytes bytes;
    if (!decode(*line, &bytes) || !is_algorithm(bytes.algorithm, "Ed"))
      return fail(BH_E_INVALID, "the key file contains a line that is not a minisign public key");
    if (out.size() == kMinisignKeys)
      return fail(BH_E_INVALID, "more than " + std::to_string(kMinisignKeys) + " public keys");
    MinisignKey &key = out.emplace_back();
    std::copy(std::begin(bytes.id), std::end(bytes.id), key.id.begin());
    std::copy(std::begin(bytes.key), std::end(bytes.key), key.key.begin());
  }
  if (out.empty()) return fail(BH_E_INVALID, "the key file has no public key");
  return out;
}

std::string minisign_key_id(const MinisignKey &key) {
  return id_text(key.id.data());
}

Result<std::string> claimed_minisign_key_id(std::string_view signature) {
  if (::sodium_init() < 0) return fail(BH_E_INTERNAL, "cannot initialize libsodium");
  Parts parts;
  if (!parse(signature, &parts)) return no_signature();
  return id_text(parts.signature.id);
}

Result<std::string> verify_minisign(std::string_view bytes, std::string_view signature,
                                    const std::vector<MinisignKey> &keys) {
  if (::sodium_init() < 0) return fail(BH_E_INTERNAL, "cannot initialize libsodium");
  Parts parts;
  if (!parse(signature, &parts)) return no_signature();
  const auto key = std::find_if(keys.begin(), keys.end(), [&](const MinisignKey &one) {
    return std::equal(one.id.begin(), one.id.end(), std::begin(parts.signature.id));
  });
  if (key == keys.end()) return fail(BH_E_DENIED, "it is signed with a different key");
  if (!signed_by(bytes, parts, *key))
    return fail(BH_E_DENIED, "the signature does not match the file");
  if (!comment_signed_by(parts, *key))
    return fail(BH_E_DENIED, "the trusted comment does not match its signature");
  return std::string(parts.trusted_comment);
}

}  // namespace bulkhead
