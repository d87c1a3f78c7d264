// Maps upstream names to client-visible names.
//
// A composed name is server + separator + original for tools and prompts, and
// scheme://server/original for resources. With prefix "never", the original name is used. A
// composed tool or prompt name that exceeds the limit is truncated and a hash of the full name is
// appended, so a tool has the same name on every start. Tool names are never split to find the
// server; the catalogue looks up the full name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"

namespace bulkhead {

class Names {
 public:
  explicit Names(const Naming &naming) : naming_(naming) {}

  // Returns nullopt if the name is too long and the profile treats an overlong name as an error.
  std::optional<std::string> compose(std::string_view server, std::string_view original) const;
  std::string compose_uri(std::string_view server, std::string_view original) const;

  // The parts of a composed URI, split at the first slash after the server.
  struct Uri {
    std::string_view server, original;
  };
  std::optional<Uri> split_uri(std::string_view uri) const;  // nullopt if not a composed URI

  // Returns the tool name that the profile assigns to this alias, or the name itself if it is not
  // an alias.
  std::string_view aliased(std::string_view tool) const;

  // Returns true if a tool or prompt of this server can have this composed name. For a shortened
  // name, only the part before the hash is compared. Without prefixes, any server can have any
  // name.
  bool may_be_of(std::string_view server, std::string_view name) const;
  // Like may_be_of(), but for a resource URI. An original URI (without the gateway's scheme) does
  // not identify a server, so it may belong to any server.
  bool uri_may_be_of(std::string_view server, std::string_view uri) const;

  // Returns the server that a composed name appears to belong to. Used only in error messages.
  std::string_view server_of(std::string_view name) const;

  const Naming &naming() const noexcept { return naming_; }

 private:
  Naming naming_;
};

}  // namespace bulkhead
