// Formats the text that the gateway prints at startup.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"

namespace bulkhead::program {

struct BannerFacts {
  std::string version;
  std::vector<std::string> endpoints;  // URLs, as in Host::status()
  std::string metrics;                 // IP:PORT of /metrics; empty if it is not served over TCP
  std::string config;                  // configuration file; empty if there is none
  std::string project;                 // project file; empty if there is none
  std::string log_file, state_dir;
  bool needs_token = false;  // clients must send a bearer token
  std::string token_file;    // contains the token; empty if the token is in the configuration
};

// Sets needs_token and token_file for the listener at this URL. `config_json` is the configuration
// of the listener's transport. A listener that is not on a loopback address always requires a
// token.
void find_token(std::string_view url, std::string_view config_json, const std::string &token_file,
                BannerFacts *facts);

// Returns the banner: the address, the paths of the files in use, and a configuration block for
// each client.
std::string banner(const BannerFacts &facts);

// Returns the table of servers with their states and counts, followed by a line for each name that
// is not offered because of a collision.
std::string servers_report(const HostStatus &status);

// Returns a line such as "connecting: 3 of 10 ready, 1 failed, waiting for github, files".
std::string progress_line(const HostStatus &status);

}  // namespace bulkhead::program
