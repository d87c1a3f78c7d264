// Tests the section [plugin_trust].
#include <catch2/catch.hpp>

#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

const std::string one_key = "RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlC";

std::vector<ProfileLayer> trust_layer(const std::string &text) {
  return {{"file", "/etc/b.toml", "[plugin_trust]\n" + text}};
}

}  // namespace

TEST_CASE("keys and digests of plugins are read in one form") {
  const std::string digest(64, 'A');
  const PluginTrust trust =
      good(trust_layer("trusted_keys = [\"" + one_key + "\"]\nrequire_signatures = true\n" +
                       "revoked_keys = [\"b74a6598cedfe167\", \"" + one_key + "\"]\n" +
                       "revoked_digests = [\"" + digest + "\"]\n"))
          .plugin_trust;
  using List = std::vector<std::string>;
  CHECK(trust.trusted_keys == List{one_key});
  CHECK(trust.require_signatures);
  CHECK(trust.revoked_keys == List{"B74A6598CEDFE167"});
  CHECK(trust.revoked_digests == List{std::string(64, 'a')});
  CHECK_FALSE(good({}).plugin_trust.require_signatures);
}

TEST_CASE("keys and digests are shown, because they are public") {
  const Profile profile = good(trust_layer("trusted_keys = [\"" + one_key + "\"]\n"));
  CHECK(shown(profile, "plugin_trust.trusted_keys[0]").value == one_key);
  CHECK(shown(profile, "plugin_trust.require_signatures").value == "false");
}

TEST_CASE("invalid keys and digests are reported with their location") {
  const std::pair<std::string, std::string> cases[] = {
      {"trusted_keys = [\"RWabc\"]\n",
       "/etc/b.toml:2:17: plugin_trust.trusted_keys[0]: \"RWabc\" is "
       "not a minisign public key"},
      {"trusted_keys = \"" + one_key + "\"\n", "an array of strings"},
      {"trusted_keys = [\"" + one_key + "\\n" + one_key + "\"]\n", "is not a minisign public key"},
      {"revoked_keys = [\"B74A6598CEDFE16\"]\n", "the ID of one, which has 16 hexadecimal digits"},
      {"revoked_digests = [\"12\"]\n", "which has 64 hexadecimal digits"},
      {"require_signatures = 1\n", "true or false"},
      {"keys = []\n", "plugin_trust.keys"}};
  for (const auto &[text, expected] : cases) {
    const auto errors = bad(trust_layer(text));
    INFO(text);
    CHECK(has(to_string(errors.at(0)), expected));
  }
}

TEST_CASE("two different keys with one ID are rejected") {
  // The key of `one_key` with its last byte changed.
  const std::string other = "RWRn4d/OmGVKt0TaLlH1Lt+2VbMcxoAuNAFGfstCJNuRiYwTqXbYYDlD";
  const auto errors = bad(trust_layer("trusted_keys = [\"" + one_key + "\", \"" + other + "\"]\n"));
  CHECK(has(to_string(errors.at(0)), "two different keys have the ID B74A6598CEDFE167"));
}
