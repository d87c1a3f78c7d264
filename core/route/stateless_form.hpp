// The form of answers for clients of MCP 2026-07-28. A result gets the members that the revision
// requires and the server has not sent: resultType, for lists and resources also ttlMs and
// cacheScope (nothing may be stored), and _meta with the gateway's name. A _meta of the server is
// not changed, so its result can then have no name of a server, which the revision permits.
//
// Used on the I/O thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "route/result_form.hpp"

namespace bulkhead {

class StatelessForm final : public ResultForm {
 public:
  // `cacheable`: the results have ttlMs and cacheScope.
  explicit StatelessForm(bool cacheable) : cacheable_(cacheable) {}

  // `info` is the JSON object that describes the gateway.
  void set_server_info(std::string_view info);

  std::string_view members(std::string_view result) const override;
  ErrorForm error(std::int32_t code) const override;

 private:
  // Bits of the members that a result already has; the index of a text.
  enum Has : unsigned { type = 1, ttl = 2, scope = 4, meta = 8, combinations = 16 };
  static unsigned has_of(std::string_view result);
  std::string text_for(unsigned has, std::string_view info) const;

  const bool cacheable_;
  std::array<std::string, combinations> texts_;
};

}  // namespace bulkhead
