// The form of responses for clients of MCP 2026-07-28. Adds the members that this revision
// requires, unless the server has sent them: resultType; for lists and resources, ttlMs and
// cacheScope (if unknown, with values that forbid caching); and _meta with the name of the gateway.
// If the server sends its own _meta, the gateway's name is not added, which the revision permits.
//
// Used on the reactor thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "route/result_form.hpp"

namespace bulkhead {

class StatelessForm final : public ResultForm {
 public:
  // If `cacheable` is true, results contain ttlMs and cacheScope.
  explicit StatelessForm(bool cacheable) : cacheable_(cacheable) {}

  // `info` is the result of server_info().
  void set_server_info(std::string_view info);

  std::string_view members(std::string_view result) const override;
  std::string_view members(const Message &answer) const override;
  std::string list_members(const ListHints &hints) const override;
  ErrorForm error(std::int32_t code) const override;

 private:
  // The members that a result already has, as bits. Combinations are indexes into texts_.
  enum Has : unsigned { type = 1, ttl = 2, scope = 4, meta = 8, combinations = 16 };
  static unsigned has_of(std::string_view result);
  static unsigned has_of(const Message &answer);
  std::string text_for(unsigned has, std::string_view info) const;

  const bool cacheable_;
  std::array<std::string, combinations> texts_;
};

}  // namespace bulkhead
