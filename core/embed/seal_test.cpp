#include "embed/seal.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

TEST_CASE("a sealed session opens only with the same key and context") {
  const Sealer sealer(std::string(Sealer::key_bytes, 'k'));
  const SealedSession session{7, 0x80000003u, 2, 5'000'000'000'000};
  const std::string sealed = sealer.seal(session, "id\nprincipal");
  CHECK(sealed.size() <= 160);
  CHECK(sealed.find_first_not_of(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") ==
        std::string::npos);
  const auto opened = sealer.open(sealed, "id\nprincipal");
  REQUIRE(opened);
  CHECK(opened->epoch == 7);
  CHECK(opened->caps == 0x80000003u);
  CHECK(opened->revision == 2);
  CHECK(opened->since_ns == 5'000'000'000'000);
  CHECK(sealer.seal(session, "id\nprincipal") != sealed);  // uses a different nonce

  CHECK_FALSE(sealer.open(sealed, "id\nsomebody"));
  CHECK_FALSE(Sealer(std::string(Sealer::key_bytes, 'x')).open(sealed, "id\nprincipal"));
  CHECK_FALSE(sealer.open("", "id\nprincipal"));
  CHECK_FALSE(sealer.open(sealed + "AAAA", "id\nprincipal"));
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string forged = sealed;
    forged[i] = forged[i] == 'A' ? 'B' : 'A';
    CHECK_FALSE(sealer.open(forged, "id\nprincipal"));
  }
}
