// Tests that the documentation lists the keys and limits that the code defines.
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <tuple>

#include "profile/sections.hpp"
#include "profile/server.hpp"
#include "profile/settings.hpp"

using namespace bulkhead;
using namespace bulkhead::profiles;

namespace {

std::string document(const char *name) {
  std::ifstream file(std::string(BULKHEAD_DOCS) + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  REQUIRE_FALSE(text.str().empty());
  return text.str();
}

// Formats "1800000" as "1,800,000", and byte counts in KiB or MiB.
std::string default_text(std::string_view name, std::uint64_t value) {
  if (name.find("bytes") != name.npos)
    return value % (1u << 20) == 0 ? std::to_string(value >> 20) + " MiB"
                                   : std::to_string(value >> 10) + " KiB";
  std::string out = std::to_string(value);
  if (value < 10'000 && !name.ends_with("_ms")) return out;
  for (std::size_t at = out.size(); at > 3; at -= 3) out.insert(at - 3, ",");
  return out;
}

}  // namespace

TEST_CASE("docs/limits.md lists every limit once, with its default") {
  const std::string text = document("limits.md");
  const Limits defaults;
  for (const Key<Limits> &key : limit_keys()) {
    const std::uint64_t value = std::stoull(key.show(key, defaults));
    const std::string row =
        "\n| `" + std::string(key.name) + "` | " + default_text(key.name, value) + " | ";
    INFO(row);
    CHECK(text.find(row) != std::string::npos);
    CHECK(text.find(row, text.find(row) + 1) == std::string::npos);
    CHECK(value >= key.least);
    CHECK(value <= key.most);
  }
}

TEST_CASE("every member of Limits has its key") {
  // A structured binding needs one name for each member of Limits. If a member is added, this line
  // does not compile until the test is extended.
  const auto &[a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa, ab,
               ac, ad, ae, af, ag, ah, ai, aj, ak] = Limits{};
  (void)std::tie(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x, y, z, aa,
                 ab, ac, ad, ae, af, ag, ah, ai, aj, ak);
  CHECK(limit_keys().size() == 37);
}

TEST_CASE("docs/profile.md names every key") {
  const std::string text = document("profile.md");
  for (const std::string_view key : server_keys()) {
    INFO(key);
    CHECK(text.find("\n| `" + std::string(key) + "` |") != std::string::npos);
  }
  for (const Setting &setting : settings_of(Profile{})) {
    if (setting.section == "limits") continue;
    INFO(setting.section << "." << setting.key);
    const std::string name(setting.section), key(setting.key);
    const std::size_t begin = text.find("\n## `[" + name + "]`");
    const bool section =
        begin != std::string::npos &&
        text.substr(begin, text.find("\n## ", begin + 1) - begin).find("`" + key + "`") !=
            std::string::npos;
    const bool row = text.find("\n| `[" + name + "] " + key + "` |") != std::string::npos;
    CHECK((section || row));
  }
  for (const std::string_view group : plugin_groups())
    CHECK(text.find("[" + std::string(group) + ".ID]") != std::string::npos);
  const std::size_t begin = text.find("\n## Plugins: ");
  REQUIRE(begin != std::string::npos);
  const std::string plugins = text.substr(begin, text.find("\n## ", begin + 1) - begin);
  for (const std::string_view key : plugin_keys()) {
    INFO(key);
    CHECK(plugins.find("`" + std::string(key) + "`") != std::string::npos);
  }
}
