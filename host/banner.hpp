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
  std::string config;                  // empty: nothing configured
  std::string log_file, state_dir;
  std::string token_file;  // of a listener that demands a bearer token, else empty
};

// Address, where things are, and the block for each client.
std::string banner(const BannerFacts &facts);

// The servers with state and counts, and the names that could not be offered.
std::string servers_report(const HostStatus &status);

// "connecting: 3 of 10 ready, 1 failed, waiting for github, files"
std::string progress_line(const HostStatus &status);

}  // namespace bulkhead::program
