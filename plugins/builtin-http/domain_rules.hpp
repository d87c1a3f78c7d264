// Decides which hosts may be contacted. The block list takes precedence over the allow list. The
// default applies to hosts that are in neither list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/url.hpp"

namespace builtin_http {

// A list entry: "name", "*.name" (matches only subdomains) or an IP address, each with an optional
// ":port".
class DomainPattern {
 public:
  // Returns false if `text` is not a valid list entry.
  static bool parse(std::string_view text, DomainPattern *out);

  bool matches(const Url &url) const;
  const std::string &text() const { return text_; }  // as written in the configuration

 private:
  std::string text_;
  std::string name_;
  bool below_ = false;      // the entry starts with "*."
  std::uint16_t port_ = 0;  // 0 matches any port
};

struct DomainRules {
  std::vector<DomainPattern> block, allow;
  bool default_allow = true;

  // Returns an error message with the host, the word "blocked" and the reason. Returns an empty
  // string if the URL is allowed.
  std::string refusal(const Url &url) const;
};

}  // namespace builtin_http
