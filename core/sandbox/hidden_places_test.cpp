#include "sandbox/hidden_places.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

using namespace bulkhead;

TEST_CASE("docs/hidden-places.md lists exactly the hidden paths and the visible paths in /run") {
  std::ostringstream page;
  page << std::ifstream(HIDDEN_PLACES_PAGE).rdbuf();
  std::set<std::string> written;  // table rows: `PLACE`, `PLACE`
  std::istringstream lines(page.str());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t cell = line.starts_with("| ") ? line.find(" | ") : line.npos;
    for (std::size_t at = cell; at != line.npos && (at = line.find('`', at)) != line.npos;) {
      const std::size_t end = line.find('`', at + 1);
      REQUIRE(end != line.npos);
      written.insert(line.substr(at + 1, end - at - 1));
      at = end + 1;
    }
  }
  std::set<std::string> listed{"/etc/ssh/*_key"};
  for (const auto &places :
       {secrets_at_home(), hidden_services(), container_services(), package_services(),
        containers_at_home(), visible_in_run(), name_services_in_run(), secrets_of_root()}) {
    for (const std::string_view place : places) {
      INFO(place);
      CHECK(listed.emplace(place).second);
      CHECK_FALSE(place.ends_with('/'));
    }
  }
  CHECK(written == listed);
}
