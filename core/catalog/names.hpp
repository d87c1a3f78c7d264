// The mapping between the names of upstreams and the names that clients see.
//
// Composed names are server + separator + original for tools and prompts, and
// scheme://server/original for resources. With prefix "never", the original name is used. A
// composed tool or prompt name that exceeds the limit is truncated and gets a hash of the whole
// name, so a tool has the same name on every start. Tool names are never split to find the server;
// the catalogue looks up the whole name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"

namespace bulkhead {

class Names {
 public:
  explicit Names(const Naming &naming) : naming_(naming) {}

  // Returns nullopt if the name is too long and the profile makes that an error.
  std::optional<std::string> compose(std::string_view server, std::string_view original) const;
  std::string compose_uri(std::string_view server, std::string_view original) const;

  // The parts of a composed URI, split at the first slash after the server.
  struct Uri {
    std::string_view server, original;
  };
  std::optional<Uri> split_uri(std::string_view uri) const;  // nullopt if not composed

  // Returns the name that the profile assigns to this alias, or the name itself if it is not an
  // alias.
  std::string_view aliased(std::string_view tool) const;

  // Returns true if a tool or prompt of this server can have this composed name. The result is
  // exact if the name contains its server: for a shortened name, only the part before the hash is
  // compared. Without prefixes, any server can have any name.
  bool may_be_of(std::string_view server, std::string_view name) const;
  // The same for a resource URI. An original URI (without the gateway's scheme) names no server, so
  // any server may have it.
  bool uri_may_be_of(std::string_view server, std::string_view uri) const;

  // The server that a composed name appears to belong to; for error texts only.
  std::string_view server_of(std::string_view name) const;

  const Naming &naming() const noexcept { return naming_; }

 private:
  Naming naming_;
};

}  // namespace bulkhead
