// Tests the minisign format with signatures made by minisign and by libsodium.
#include "signing/minisign.hpp"

#include <catch2/catch.hpp>

#include "signing/signing_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

// Signatures of kText that were made by minisign 0.11 with `minisign -G -W` and `minisign -S -t "a
// golden file"`, with and without -l.
constexpr std::string_view kText = "hello, world\n";
constexpr std::string_view kKey =
    "untrusted comment: minisign public key B74A6598CEDFE167\n"
    "RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlC\n";
constexpr std::string_view kPrehashed =
    "untrusted comment: signature from minisign secret key\n"
    "RURn4d/OmGVKt0lJjXP0hfdnv/py20IuL9aYgrnuswu44K2J3s0naxHan94xofx1Fbgy2JSAJjTQpSyahmuB/"
    "brWXrO7x4Dqo"
    "wk=\n"
    "trusted comment: a golden file\n"
    "GM9yp9KiTSa7CFbq8ff/fdFuhXdxQkr5oyIZP5LKQKPRSvhuBofKBskb11V28hq6AgYF8RUfztE4rcLJVrxXAQ==\n";
constexpr std::string_view kLegacy =
    "untrusted comment: signature from minisign secret key\n"
    "RWRn4d/"
    "OmGVKt8tVMIoVcvWZUk1OLrKbtbOAobirk6QDtI6R9oEkai91MZPFm2ZFOsdaaSf69ZsuyIyuhJwJ3PAFvJzTUjW58"
    "wk=\n"
    "trusted comment: a golden file\n"
    "RUDBiG8a32xOaWdOoOBtQxZEH6iU/yLMk7wrXMaDmt7INHBjijnNQ0lAQZshfLduyZCObz5istzHDBSKjtpRAQ==\n";

std::vector<MinisignKey> keys(std::string_view text) {
  auto read = read_minisign_keys(text);
  if (!read) FAIL(read.error().text);
  return *read;
}

}  // namespace

TEST_CASE("signatures by minisign are accepted in both formats") {
  for (const std::string_view signature : {kPrehashed, kLegacy}) {
    CHECK(verify_minisign(kText, signature, keys(kKey)) == "a golden file");
    CHECK(verify_minisign("hello, World\n", signature, keys(kKey)).error().code == BH_E_DENIED);
  }
}

TEST_CASE("the ID of a key is the one that minisign displays") {
  CHECK(minisign_key_id(keys(kKey).front()) == "B74A6598CEDFE167");
  for (const std::string_view signature : {kPrehashed, kLegacy})
    CHECK(claimed_minisign_key_id(signature) == "B74A6598CEDFE167");
  CHECK(claimed_minisign_key_id("no signature").error().code == BH_E_INVALID);
}

TEST_CASE("a byte outside ASCII is not decoded as a base64 letter") {
  for (const std::string_view signature : {kPrehashed, kLegacy}) {
    std::size_t slashes = 0;
    for (std::size_t at = signature.find('/'); at != signature.npos;
         at = signature.find('/', at + 1)) {
      std::string changed(signature);
      changed[at] = '\xFF';
      CHECK_FALSE(verify_minisign(kText, changed, keys(kKey)).has_value());
      ++slashes;
    }
    CHECK(slashes > 1);
  }
  std::string key(kKey);
  REQUIRE(key.find('/') != key.npos);
  key[key.find('/')] = '\xFF';
  CHECK_FALSE(read_minisign_keys(key).has_value());
}

TEST_CASE("changing any byte of a signature is detected") {
  const Signer signer;
  const std::string text = "some profile";
  for (const bool prehashed : {true, false}) {
    const std::string good = signer.sign(text, "timestamp:1", prehashed);
    const auto known = keys(signer.public_key());
    REQUIRE(verify_minisign(text, good, known) == "timestamp:1");
    const std::size_t comment = good.find('\n');
    for (std::size_t at = comment + 1; at < good.size(); ++at) {
      if (good[at] == '\n') continue;
      std::string changed = good;
      changed[at] = good[at] == 'A' ? 'B' : 'A';
      INFO(at);
      CHECK_FALSE(verify_minisign(text, changed, known).has_value());
    }
    for (std::size_t n = 0; n + 1 < good.size(); ++n)  // the final line ending is optional
      CHECK_FALSE(verify_minisign(text, good.substr(0, n), known).has_value());
    CHECK(verify_minisign(text, good.substr(0, good.size() - 1), known).has_value());
    CHECK_FALSE(verify_minisign(text, good + "x", known).has_value());
    CHECK_FALSE(verify_minisign(text + "x", good, known).has_value());
  }
}

TEST_CASE("another key, or the trusted comment of another signature, is rejected") {
  const Signer ours, theirs;
  const std::string text = "some profile", good = ours.sign(text, "a", true);
  const auto refused = verify_minisign(text, good, keys(theirs.public_key()));
  CHECK(refused.error().text == "it is signed with a different key");
  // A signature that has the right key ID but was made with another key is rejected.
  Signer forger;
  forger.take_id_of(ours);
  CHECK(verify_minisign(text, forger.sign(text, "a", true), keys(ours.public_key())).error().text ==
        "the signature does not match the file");
  const std::string other = ours.sign("other", "b", true);
  const std::string mixed = good.substr(0, good.find("trusted comment: a")) +
                            other.substr(other.find("trusted comment: b"));
  CHECK(verify_minisign(text, mixed, keys(ours.public_key())).error().text ==
        "the trusted comment does not match its signature");
  // One matching key is enough.
  CHECK(verify_minisign(text, good, keys(theirs.public_key() + ours.public_key())).has_value());
}

TEST_CASE("invalid keys are rejected") {
  for (const std::string_view text :
       {std::string_view(), std::string_view("untrusted comment: x\n"), std::string_view("AAAA\n"),
        // Algorithm "ED" instead of "Ed".
        std::string_view("RURn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlC\n"),
        std::string_view("RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDl\n")}) {
    INFO(text);
    CHECK(read_minisign_keys(text).error().code == BH_E_INVALID);
  }
  std::string many;
  for (int i = 0; i < 9; ++i) many += kKey;
  CHECK(read_minisign_keys(many).error().text == "more than 8 public keys");
}
