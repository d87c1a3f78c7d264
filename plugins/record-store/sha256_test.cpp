#include "record-store/sha256.hpp"

#include <bulkhead/cpp/text.hpp>

#include <catch2/catch.hpp>

#include <sodium.h>

#include <string>

#include "record-store/chain.hpp"

using namespace record_store;

namespace {

std::string hex(std::string_view text) {
  return bh::hex(bytes_of(sha256(text)));
}

}  // namespace

TEST_CASE("sha256 matches the FIPS 180 examples") {
  CHECK(hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(hex(std::string(1'000'000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("sha256 of any length matches libsodium") {
  std::string text;
  for (unsigned n = 0; n < 400; ++n) {
    Hash expected;
    crypto_hash_sha256(expected.data(), reinterpret_cast<const unsigned char *>(text.data()),
                       text.size());
    INFO(n);
    CHECK(sha256(text) == expected);
    CHECK(sha256(std::string_view(text).substr(n / 3)) == sha256(text.substr(n / 3)));
    text += static_cast<char>(n * 7 + n / 3);
  }
}
