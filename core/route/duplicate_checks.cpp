#include "route/duplicate_checks.hpp"

#include <utility>

#include "mcp/scan.hpp"

namespace bulkhead {

struct DuplicateChecks::Check {
  std::weak_ptr<const Found> found;
  std::uint64_t number;
  KeptText text;
  std::string_view part;
  bool duplicates = true;  // stays true if the check fails

  void work() noexcept {
    try {
      duplicates = mcp::has_duplicate_members(part);
    } catch (const std::exception &) {  // out of memory: the text counts as one with duplicates
    }
  }
  static void done(Check &checked) {
    const std::unique_ptr<Check> check(&checked);
    if (const auto found = check->found.lock()) (*found)(check->number, check->duplicates);
  }
};

DuplicateChecks::DuplicateChecks(Reactor &reactor, Found found)
    : reactor_(reactor), found_(std::make_shared<const Found>(std::move(found))) {}

DuplicateChecks::~DuplicateChecks() = default;

bool DuplicateChecks::begin(std::uint64_t number, KeptText text, std::string_view part) {
  auto check = std::make_unique<Check>(Check{found_, number, std::move(text), part});
  // The work item has no owner, so done() frees the check even after this object is destroyed.
  if (reactor_.run_blocking(nullptr, bh::blocking_work<&Check::work, Check::done>(check.get())) !=
      BH_OK)
    return false;
  static_cast<void>(check.release());
  return true;
}

}  // namespace bulkhead
