// How an upstream's names become the client's and back.
//
// Composed: server + separator + original for tools and prompts, scheme://server/original for
// resources; with prefix "never" the original itself. A composed tool or prompt name longer than
// the bound keeps its head and gets a hash of the whole, so that the same tool has the same name on
// every start. Nobody splits a tool's name to find its server: the catalogue looks it up whole.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"

namespace bulkhead {

class Names {
 public:
  explicit Names(const Naming &naming) : naming_(naming) {}

  // nullopt: too long, and the profile wants that to be an error.
  std::optional<std::string> compose(std::string_view server, std::string_view original) const;
  std::string compose_uri(std::string_view server, std::string_view original) const;

  // The parts of a composed URI, nullopt if it is none. Split at the first slash after the server.
  struct Uri {
    std::string_view server, original;
  };
  std::optional<Uri> split_uri(std::string_view uri) const;

  // What the profile has this tool's name for; else the name itself.
  std::string_view aliased(std::string_view tool) const;

  // Whether a tool or prompt of this server may have this composed name. Exact as far as a name
  // holds its server's: of a shortened name only the part before the hash is compared. Without
  // prefix every server may have every name.
  bool may_be_of(std::string_view server, std::string_view name) const;
  // The same of a resource's URI. An original URI (one without our scheme) names no server: every
  // server may have it.
  bool uri_may_be_of(std::string_view server, std::string_view uri) const;

  // The server that a composed name *looks* to belong to; only for error texts.
  std::string_view server_of(std::string_view name) const;

  const Naming &naming() const noexcept { return naming_; }

 private:
  Naming naming_;
};

}  // namespace bulkhead
