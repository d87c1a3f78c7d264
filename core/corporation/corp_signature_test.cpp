// Tests the verification of signed corp profiles, including the specific error for each failed
// check.
#include "corporation/corp_signature.hpp"

#include <catch2/catch.hpp>

#include "profile/blake3.hpp"
#include "profile/revision.hpp"
#include "signing/signing_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

std::string profile(const std::string &revision = "2026.0131.2",
                    const std::string &id = "acme-base") {
  return "id = \"" + id + "\"\nrevision = \"" + revision + "\"\n[limits]\ngrace_ms = 5\n";
}

// A valid signed profile. Each test changes one part of it.
struct Signed {
  Signer signer;
  std::string payload = profile();
  std::string status = "active";
  std::string hash = "blake3:" + blake3_hex(payload);
  std::string keys = signer.public_key();
  std::string catalogue() const {
    return R"({"format": 1, "profiles": {"acme-base": {"current_revision": "2026.0201.1", "revisions": {
      "2026.0131.2": {"status": ")" +
           status + R"(", "min_binary": "0.1", "urls": [], "hash": ")" + hash + R"("}}}}})";
  }

  // Returns "fine ID REVISION CURRENT" (or "deprecated ..."), or the error.
  std::string check() const {
    const std::string text = catalogue();
    return check(text, signer.sign(text, "c", true), signer.sign(payload, "p", true));
  }
  std::string check(const std::string &catalogue_text, const std::string &catalogue_signature,
                    const std::string &signature) const {
    const auto made = check_corp({payload, signature, catalogue_text, catalogue_signature, keys,
                                  "corp.toml", "catalogue.json"});
    if (!made) return made.error().text;
    return std::string(made->deprecated ? "deprecated " : "fine ") + made->id + " " +
           made->revision + " " + made->current;
  }
};

bool has(const std::string &text, std::string_view part) {
  INFO(text);
  INFO(part);
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("B38 a signed corp profile that passes all checks is accepted") {
  CHECK(Signed().check() == "fine acme-base 2026.0131.2 2026.0201.1");
  Signed old;
  old.status = "deprecated";
  CHECK(old.check() == "deprecated acme-base 2026.0131.2 2026.0201.1");
}

TEST_CASE("B38 changing any byte after signing is detected") {
  const Signed good;
  const std::string catalogue = good.catalogue();
  const std::string of_catalogue = good.signer.sign(catalogue, "c", true);
  const std::string of_payload = good.signer.sign(good.payload, "p", true);
  REQUIRE(has(good.check(catalogue, of_catalogue, of_payload), "fine"));
  for (std::size_t at = 0; at < good.payload.size(); ++at) {
    Signed flipped = good;
    flipped.payload[at] = static_cast<char>(flipped.payload[at] ^ 1);
    CHECK(flipped.check(catalogue, of_catalogue, of_payload) ==
          "corp.toml: the signature does not match the file [signature]");
  }
  for (std::size_t at = 0; at < catalogue.size(); ++at) {
    std::string flipped = catalogue;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    CHECK(good.check(flipped, of_catalogue, of_payload) ==
          "catalogue.json: the signature does not match the file [signature]");
  }
  CHECK(has(good.check(catalogue, of_payload, of_catalogue), "[signature]"));
  CHECK(
      has(good.check(catalogue, of_catalogue, "nothing"), "not a minisign signature [signature]"));
  Signed other_key = good;
  other_key.keys = Signer().public_key();
  CHECK(has(other_key.check(), "signed with a different key [signature]"));
  other_key.keys = "no key";
  CHECK(has(other_key.check(), "not a minisign public key [signature]"));
}

TEST_CASE("B38 mismatches of hash, id, revision and status have separate errors") {
  Signed hash;
  hash.hash = "blake3:" + std::string(64, '0');
  CHECK(has(hash.check(), "does not match the catalogue's hash for revision 2026.0131.2 [hash]"));
  Signed revision;
  revision.payload = profile("2026.0131.3");
  CHECK(has(revision.check(),
            "its revision \"2026.0131.3\" of \"acme-base\" is not in the catalogue"));
  CHECK(has(revision.check(), "[identity]"));
  Signed id;
  id.payload = profile("2026.0131.2", "other");
  CHECK(has(id.check(), "its id \"other\" is not in the catalogue [identity]"));
  for (const std::string text : {"[limits]\n", "id = 5\nrevision = \"2026.0131.2\"\n",
                                 "id = \"acme-base\"\nrevision = \"2\"\n"}) {
    Signed none;
    none.payload = text;
    CHECK(has(none.check(), "requires an \"id\""));
  }
  Signed revoked;
  revoked.status = "revoked";
  CHECK(revoked.check() == "corp.toml: revision 2026.0131.2 has been revoked [revoked]");
  Signed odd;
  odd.status = "fine";
  CHECK(has(odd.check(), "the status of 2026.0131.2 must be"));
}

TEST_CASE("B38 the machine's configuration restricts the accepted profiles") {
  Signed pinned;
  pinned.keys += "id acme-base\n";
  CHECK(has(pinned.check(), "fine acme-base"));
  pinned.keys = "id acme-lab\n" + pinned.signer.public_key() + "id acme-new\r\n";
  CHECK(pinned.check() ==
        "corp.toml: its id is \"acme-base\", but this machine accepts \"acme-lab\" and others "
        "(corp.pub) [identity]");
  pinned.keys = pinned.signer.public_key() + "id Acme\n";
  CHECK(has(pinned.check(), "\"id Acme\" is not a valid profile id [signature]"));
  pinned.keys = "id acme-base\n";
  CHECK(has(pinned.check(), "no public key"));
}

TEST_CASE("a signed catalogue entry is reported even if the profile is rejected") {
  const auto seen_of = [](const Signed &one, bool catalogue = true) {
    const std::string text = one.catalogue();
    CorpRevision seen{"x", {}, {}, false};
    static_cast<void>(check_corp({one.payload, one.signer.sign(one.payload, "p", true), text,
                                  one.signer.sign(catalogue ? text : text + " ", "c", true),
                                  one.keys, "corp.toml", "catalogue.json"},
                                 &seen));
    return seen.id + " " + seen.revision + " " + seen.current + (seen.revoked ? " revoked" : "");
  };
  Signed one;
  CHECK(seen_of(one) == "acme-base 2026.0131.2 2026.0201.1");
  one.status = "revoked";
  CHECK(seen_of(one) == "acme-base 2026.0131.2 2026.0201.1 revoked");
  CHECK(seen_of(one, false) == "  ");
  one.hash = "blake3:";
  CHECK(seen_of(one) == "acme-base 2026.0131.2 2026.0201.1 revoked");
}

TEST_CASE("invalid catalogues are rejected") {
  const Signed good;
  const std::string of_payload = good.signer.sign(good.payload, "p", true);
  for (const auto &[text, said] : std::initializer_list<std::pair<std::string, std::string>>{
           {"{}", "\"format\" must be 1"},
           {"{\"format\": 2}", "\"format\" must be 1"},
           {"{\"format\": 1}", "is not in the catalogue"},
           {"{\"format\": 1, \"profiles\": {\"acme-base\": {\"revisions\": {\"2026.0131.2\": "
            "{}}}}}",
            "\"current_revision\" is required, and so are \"status\" and \"hash\" for each "
            "revision"},
           {"no JSON", "not valid JSON"}}) {
    CHECK(has(good.check(text, good.signer.sign(text, "c", true), of_payload), said));
  }
}

TEST_CASE("revisions are ordered by day, then by number") {
  for (const std::string_view good : {"2026.0131.0", "0000.0000.12345"}) CHECK(is_revision(good));
  for (const std::string_view wrong : {"", "2026.0131", "2026.0131.", "2026.131.1", "2026-0131-1",
                                       "2026.0131.1a", "2026.01310.1", "2026.0131.-1"})
    CHECK_FALSE(is_revision(wrong));
  CHECK(comes_before("2026.0131.9", "2026.0131.10"));
  CHECK(comes_before("2026.0131.10", "2026.0201.1"));
  CHECK(comes_before("2025.1231.99", "2026.0101.0"));
  CHECK_FALSE(comes_before("2026.0131.10", "2026.0131.9"));
  CHECK_FALSE(comes_before("2026.0131.010", "2026.0131.10"));
  CHECK(is_profile_id("a1-"));
  for (const std::string_view wrong : {"ab", "-ab", "Abc", "a.b"})
    CHECK_FALSE(is_profile_id(wrong));
}
