#include <catch2/catch.hpp>

#include <sodium.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>
#include <vector>

#define TEST_PLUGINS ""
#include "plugin/audit_key.hpp"
#include "plugin/test_folder.hpp"

using namespace bulkhead;

namespace {

std::string text_of(const std::string &path) {
  std::ostringstream out;
  out << std::ifstream(path).rdbuf();
  return out.str();
}

bool fits(const AuditSignature &made, const std::string &message) {
  return crypto_sign_verify_detached(
             reinterpret_cast<const unsigned char *>(made.signature.data()),
             reinterpret_cast<const unsigned char *>(message.data()), message.size(),
             reinterpret_cast<const unsigned char *>(made.public_key.data())) == 0;
}

std::string place(unsigned chain, std::uint64_t seq, char digit = 'a') {
  return "chain " + std::to_string(chain) + " seq " + std::to_string(seq) + " head " +
         std::string(64, digit);
}

}  // namespace

TEST_CASE("a statement is signed with the instance's name and the time, and listed") {
  testing::TestFolder folder;
  const auto made = sign_for_audit(folder.path(), "book", place(1, 5));
  REQUIRE(made.has_value());
  const std::string message =
      "bulkhead.audit/1\nbook\n" + std::to_string(made->unix_s) + "\n" + place(1, 5);
  CHECK(fits(*made, message));
  CHECK_FALSE(fits(*made, message + "0"));
  CHECK(text_of(folder / "audit/signed/book") ==
        std::to_string(made->unix_s) + " " + place(1, 5) + "\n");
  CHECK(signed_instances(folder.path()) == std::vector<std::string>{"book"});
  CHECK(text_of(folder / "audit/supervisor/public-key").size() == 65);
  struct stat status{};
  REQUIRE(::stat((folder / "secrets/@audit/ed25519").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto again = sign_for_audit(folder.path(), "other", "x");
  REQUIRE(again.has_value());
  CHECK(again->public_key == made->public_key);
}

TEST_CASE("a statement that is not a single line of text is rejected") {
  testing::TestFolder folder;
  CHECK(sign_for_audit(folder.path(), "book", "").error().code == BH_E_INVALID);
  CHECK(sign_for_audit(folder.path(), "book", "a\nb").error().code == BH_E_INVALID);
  CHECK(sign_for_audit(folder.path(), "book", std::string(513, 'x')).error().code == BH_E_INVALID);
  for (const char *odd :
       {"chain 1 seq 5 head 00", "chain 1 seq -5 head", "chain", "chain 1 seq 5"}) {
    CHECK(sign_for_audit(folder.path(), "book", odd).error().code == BH_E_INVALID);
  }
  CHECK(sign_for_audit(folder.path(), "book", place(65, 1)).error().code == BH_E_INVALID);
  CHECK(sign_for_audit(folder.path(), "../book", place(1, 1)).error().code == BH_E_INVALID);
}

TEST_CASE(
    "a position before the last signed position is not signed again, in any chain of any "
    "instance") {
  testing::TestFolder folder;
  const auto sign = [&](const char *instance, unsigned chain, std::uint64_t seq, char digit = 'a') {
    const auto made = sign_for_audit(folder.path(), instance, place(chain, seq, digit));
    return made ? BH_OK : made.error().code;
  };
  CHECK(sign("book", 1, 10) == BH_OK);
  CHECK(sign("book", 1, 10) == BH_OK);  // a retry, because the signature was lost
  CHECK(sign("book", 1, 10, 'b') == BH_E_DENIED);
  CHECK(sign("book", 1, 9) == BH_E_DENIED);
  CHECK(sign("book", 2, 3) == BH_OK);
  CHECK(sign("other", 1, 4) == BH_OK);
  CHECK(sign("book", 1, 11, 'b') == BH_OK);
  const auto places = signed_places(folder.path(), "book");
  REQUIRE(places.size() == 3);
  CHECK(places[2].seq == 11);
  CHECK(places[2].head == std::string(64, 'b'));
  const auto refused = sign_for_audit(folder.path(), "book", place(1, 2));
  CHECK(refused.error().text.find("signed up to seq 11") != std::string::npos);
}

TEST_CASE("an incomplete line is ignored, and the next line is complete") {
  testing::TestFolder folder;
  REQUIRE(sign_for_audit(folder.path(), "book", place(1, 10)).has_value());
  const std::string whole = text_of(folder / "audit/signed/book");
  for (const std::size_t cut : {std::size_t{3}, std::size_t{20}, whole.size() - 2}) {
    folder.write("audit/signed/book", whole + whole.substr(0, cut));
    CHECK(signed_places(folder.path(), "book").size() == 1);
    REQUIRE(sign_for_audit(folder.path(), "book", place(1, 20)).has_value());
    const auto places = signed_places(folder.path(), "book");
    REQUIRE(places.size() == 2);
    CHECK(places[1].seq == 20);
  }
}

TEST_CASE("a full list is thinned to one old signature per hour") {
  testing::TestFolder folder;
  REQUIRE(sign_for_audit(folder.path(), "book", place(2, 7)).has_value());
  std::string list;
  std::uint64_t seq = 1;
  constexpr std::uint64_t day = 1'000 * 86'400;
  while (list.size() < max_audit_list_bytes - 10) {
    list += std::to_string(day + seq) + " " + place(1, seq) + "\n";
    ++seq;
  }
  folder.write("audit/signed/book", std::to_string(day) + " " + place(2, 7) + "\n" + list);
  REQUIRE(sign_for_audit(folder.path(), "book", place(1, seq)).has_value());
  const auto places = signed_places(folder.path(), "book");
  CHECK(places.size() < seq / 1'000);
  CHECK(places.size() >= seq / 3'600);
  CHECK(places[0].chain == 2);
  CHECK(places[1].seq == 1);
  CHECK(places[2].seq == 3'600);
  CHECK(places[places.size() - 2].seq == seq - 1);
  CHECK(places.back().seq == seq);
}

TEST_CASE("gateways that start at the same time create one key") {
  testing::TestFolder folder;
  std::vector<std::string> keys(8);
  std::vector<std::thread> threads;
  for (std::string &key : keys) {
    threads.emplace_back([&] { key = sign_for_audit(folder.path(), "book", "x")->public_key; });
  }
  for (std::thread &thread : threads) thread.join();
  for (const std::string &key : keys) CHECK(key == keys.front());
}

TEST_CASE("a damaged key is reported and not replaced") {
  testing::TestFolder folder;
  REQUIRE(sign_for_audit(folder.path(), "book", "x").has_value());
  folder.write("secrets/@audit/ed25519", "short");
  const auto made = sign_for_audit(folder.path(), "book", "x");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().text.find("damaged") != std::string::npos);
}
