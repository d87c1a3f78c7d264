// Maps upstream names to client-visible names.
//
// The composed name of a tool or prompt is server + separator + original name. The composed URI of
// a resource is scheme://server/original. If the profile sets the prefix to "never", the original
// name is used. A tool or prompt name that exceeds the length limit is truncated, and a hash of the
// full name is appended. A tool therefore has the same name after every restart. Tool names are
// never split to find the server: the catalogue looks up the full name.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"

namespace bulkhead {

class Names {
 public:
  explicit Names(const Naming &naming) : naming_(naming) {}

  // Returns nullopt if the name is too long and the profile does not allow truncation.
  std::optional<std::string> compose(std::string_view server, std::string_view original) const;
  std::string compose_uri(std::string_view server, std::string_view original) const;

  // The parts of a composed URI, which is split at the first slash after the server's name.
  struct Uri {
    std::string_view server, original;
  };
  std::optional<Uri> split_uri(std::string_view uri) const;  // nullopt: not a composed URI

  // If `tool` is an alias in the profile, returns the name of the tool that it stands for.
  // Otherwise, returns `tool`.
  std::string_view aliased(std::string_view tool) const;

  // Returns true if a tool or prompt of this server can have this composed name. If the name was
  // truncated, only the part before the hash is compared. Without prefixes, always returns true.
  bool may_be_of(std::string_view server, std::string_view name) const;
  // Returns true if a resource of this server can have this URI. An original URI (without the
  // gateway's scheme) can belong to any server.
  bool uri_may_be_of(std::string_view server, std::string_view uri) const;

  // Returns the part of the name before the first separator, which may be the name of a server.
  // Returns an empty view without prefixes or a separator. Use the result only in error messages.
  std::string_view server_of(std::string_view name) const;

  const Naming &naming() const noexcept { return naming_; }

 private:
  Naming naming_;
};

}  // namespace bulkhead
