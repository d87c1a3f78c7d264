// Which hosts may be asked: a block list, then an allow list, then a default.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/url.hpp"

namespace builtin_http {

// One entry of a list: "name", "*.name" (every name below it, not itself), an address; each with
// ":port" for that port only.
class DomainPattern {
 public:
  // False: text is none of these.
  static bool parse(std::string_view text, DomainPattern *out);

  bool matches(const Url &url) const;
  const std::string &text() const { return text_; }  // as it was configured

 private:
  std::string text_;
  std::string name_;
  bool below_ = false;      // "*."
  std::uint16_t port_ = 0;  // 0: any
};

struct DomainRules {
  std::vector<DomainPattern> block, allow;
  bool default_allow = true;

  // Empty: url may be asked. Else a sentence that names the host, "blocked" and the reason.
  std::string refusal(const Url &url) const;
};

}  // namespace builtin_http
