// Tests the minisign format with signatures made by minisign and by libsodium. Also tests BLAKE3.
#include "corporation/minisign.hpp"

#include <catch2/catch.hpp>

#include "corporation/signing_test_util.hpp"
#include "profile/blake3.hpp"

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

TEST_CASE("BLAKE3 digests are correct for all tree shapes") {
  // The digests that b3sum computes for inputs of n bytes. The byte values repeat the sequence 0,
  // 1, ..., 250.
  const std::pair<std::size_t, std::string_view> cases[] = {
      {0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"},
      {1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"},
      {63, "e9bc37a594daad83be9470df7f7b3798297c3d834ce80ba85d6e207627b7db7b"},
      {64, "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"},
      {65, "de1e5fa0be70df6d2be8fffd0e99ceaa8eb6e8c93a63f2d8d1c30ecb6b263dee"},
      {1023, "10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11"},
      {1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"},
      {1025, "d00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444"},
      {2048, "e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a"},
      {2049, "5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030"},
      {3072, "b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2"},
      {3073, "7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3"},
      {5120, "9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833"},
      {31744, "62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47"},
      {102400, "bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085"},
  };
  for (const auto &[size, digest] : cases) {
    std::string text;
    for (std::size_t i = 0; i < size; ++i) text += static_cast<char>(i % 251);
    INFO(size);
    CHECK(blake3_hex(text) == digest);
  }
}
