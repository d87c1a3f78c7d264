// Text that the gateway prints at start.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"

namespace bulkhead::program {

struct BannerFacts {
  std::string version;
  std::vector<std::string> endpoints;  // as in Host::status()
  std::string metrics;                 // IP:PORT; empty: no metrics over TCP
  std::string config;                  // empty: no configuration
  std::string project;                 // the project file; empty: none
  std::string log_file, state_dir;
  bool needs_token = false;  // clients must send a bearer token
  std::string token_file;    // contains the token; empty: it is in the configuration
};

// Determines whether the listener at this URL requires a token, and which file contains the token.
// `config_json` is the transport's configuration. A listener that is not on loopback always
// requires a token.
void find_token(std::string_view url, std::string_view config_json, const std::string &token_file,
                BannerFacts *facts);

// Returns the banner: the address, the locations of files, and a configuration block for each
// client.
std::string banner(const BannerFacts &facts);

// Returns the table of servers with their states and counts, and the names that are not offered.
std::string servers_report(const HostStatus &status);

// Returns, for example, "connecting: 3 of 10 ready, 1 failed, waiting for github, files".
std::string progress_line(const HostStatus &status);

}  // namespace bulkhead::program
