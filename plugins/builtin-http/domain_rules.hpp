// Rules for hosts. A block list takes precedence over an allow list, which takes precedence over
// the default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/url.hpp"

namespace builtin_http {

// One list entry: "name", "*.name" (subdomains only), or an address, each with an optional ":port".
class DomainPattern {
 public:
  // Returns false if `text` is not a valid entry.
  static bool parse(std::string_view text, DomainPattern *out);

  bool matches(const Url &url) const;
  const std::string &text() const { return text_; }  // as configured

 private:
  std::string text_;
  std::string name_;
  bool below_ = false;      // the entry begins with "*."
  std::uint16_t port_ = 0;  // 0 for any port
};

struct DomainRules {
  std::vector<DomainPattern> block, allow;
  bool default_allow = true;

  // Returns an empty string if the URL is allowed. Otherwise returns a sentence with the host,
  // "blocked" and the reason.
  std::string refusal(const Url &url) const;
};

}  // namespace builtin_http
