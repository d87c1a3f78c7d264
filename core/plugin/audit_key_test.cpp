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

}  // namespace

TEST_CASE("a statement is signed with the instance's name and the time, and listed") {
  testing::TestFolder folder;
  const auto made = sign_for_audit(folder.path(), "book", "chain 1 seq 5 head 00");
  REQUIRE(made.has_value());
  const std::string message =
      "bulkhead.audit/1\nbook\n" + std::to_string(made->unix_s) + "\nchain 1 seq 5 head 00";
  CHECK(fits(*made, message));
  CHECK_FALSE(fits(*made, message + "0"));
  CHECK(text_of(folder / "audit/supervisor/signed") ==
        std::to_string(made->unix_s) + " book chain 1 seq 5 head 00\n");
  CHECK(text_of(folder / "audit/supervisor/public-key").size() == 65);
  struct stat status{};
  REQUIRE(::stat((folder / "secrets/@audit/ed25519").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto again = sign_for_audit(folder.path(), "other", "x");
  REQUIRE(again.has_value());
  CHECK(again->public_key == made->public_key);
}

TEST_CASE("what is no line of text is not signed") {
  testing::TestFolder folder;
  CHECK(sign_for_audit(folder.path(), "book", "").error().code == BH_E_INVALID);
  CHECK(sign_for_audit(folder.path(), "book", "a\nb").error().code == BH_E_INVALID);
  CHECK(sign_for_audit(folder.path(), "book", std::string(513, 'x')).error().code == BH_E_INVALID);
}

TEST_CASE("gateways that start at once have one key") {
  testing::TestFolder folder;
  std::vector<std::string> keys(8);
  std::vector<std::thread> threads;
  for (std::string &key : keys) {
    threads.emplace_back([&] { key = sign_for_audit(folder.path(), "book", "x")->public_key; });
  }
  for (std::thread &thread : threads) thread.join();
  for (const std::string &key : keys) CHECK(key == keys.front());
}

TEST_CASE("a damaged key is said, not replaced") {
  testing::TestFolder folder;
  REQUIRE(sign_for_audit(folder.path(), "book", "x").has_value());
  folder.write("secrets/@audit/ed25519", "short");
  const auto made = sign_for_audit(folder.path(), "book", "x");
  REQUIRE_FALSE(made.has_value());
  CHECK(made.error().text.find("damaged") != std::string::npos);
}
