// What a person sees when the gateway starts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"

namespace bulkhead::program {

struct BannerFacts {
  std::string version;
  std::vector<std::string> endpoints;  // as Host::status() has them
  std::string metrics;                 // IP:PORT; empty: not over TCP
  std::string config;                  // empty: nothing configured
  std::string project;                 // the project file; empty: none
  std::string log_file, state_dir;
  bool needs_token = false;  // clients must send a bearer token
  std::string token_file;    // where it is kept; empty: it is in the configuration
};

// Does the listener at this URL demand a token, and where is it? `config_json` is the transport's
// configuration; one that is not on loopback always has a token.
void find_token(std::string_view url, std::string_view config_json, const std::string &token_file,
                BannerFacts *facts);

// Address, where things are, and the block for each client.
std::string banner(const BannerFacts &facts);

// The servers with state and counts, and the names that could not be offered.
std::string servers_report(const HostStatus &status);

// "connecting: 3 of 10 ready, 1 failed, waiting for github, files"
std::string progress_line(const HostStatus &status);

}  // namespace bulkhead::program
