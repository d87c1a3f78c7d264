#include "sandbox/homes.hpp"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "sandbox/services.hpp"

namespace bulkhead {
namespace {

// Returns this user's home directory from the user database, or an empty string if there is none.
std::string home_of_account() {
  std::array<char, 16'384> buffer;
  passwd entry{};
  passwd *found = nullptr;
  const bool known = ::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) == 0 &&
                     found != nullptr && found->pw_dir != nullptr;
  return known ? found->pw_dir : "";
}

// Returns the value of HOME, or `account` if HOME does not name an existing folder (for example, in
// cron jobs and services).
std::string home_of_user(const std::string &account) {
  struct stat status{};
  const char *home = std::getenv("HOME");
  const bool usable =
      home != nullptr && home[0] == '/' && ::stat(home, &status) == 0 && S_ISDIR(status.st_mode);
  return usable ? home : account;
}

}  // namespace

void find_homes(ViewRequest *request) {
  const std::string account = home_of_account();
  if (request->home.empty()) request->home = home_of_user(account);
  request->homes.push_back(account);
  if (const char *home = std::getenv("HOME"); home != nullptr) request->homes.emplace_back(home);
  find_services(request);
}

}  // namespace bulkhead
