#include "read_budget.hpp"

#include <algorithm>
#include <charconv>

namespace bulkhead::rules {
namespace {

constexpr std::string_view kBudgetKeys[] = {"calls", "bytes", "destinations", "per", "by"};
constexpr std::string_view kBy[] = {"session", "principal", "process", "server", "tool"};
constexpr std::uint64_t kMaxPer = 31ull * 24 * 3'600'000;

// Converts a duration such as "30s", "1m", "12h" or "1d" to milliseconds. Returns 0 if the string
// is invalid or the duration is not between 1 second and 31 days.
std::uint64_t duration_ms(std::string_view text) {
  if (text.size() < 2 || text.size() > 8) return 0;
  std::uint64_t unit = 0;
  switch (text.back()) {
    case 's':
      unit = 1'000;
      break;
    case 'm':
      unit = 60'000;
      break;
    case 'h':
      unit = 3'600'000;
      break;
    case 'd':
      unit = 24 * 3'600'000ull;
      break;
    default:
      return 0;
  }
  std::uint64_t number = 0;
  const char *end = text.data() + text.size() - 1;
  if (std::from_chars(text.data(), end, number).ptr != end) return 0;
  return number * unit <= kMaxPer ? number * unit : 0;
}

bool read_counting_keys(const Table &table, Budget *budget) {
  const auto names = table.texts("by");
  if (!names) {
    budget->by_session = table.find("by") == nullptr;
    return budget->by_session;
  }
  for (const std::string &name : *names) {
    bool *const flags[] = {&budget->by_session, &budget->by_principal, &budget->by_process,
                           &budget->by_server, &budget->by_tool};
    const auto at = std::find(std::begin(kBy), std::end(kBy), name);
    if (at == std::end(kBy)) {
      table.fault("by", "\"" + name.substr(0, 80) +
                            "\" is not a valid counting key; use session, principal, process, "
                            "server or tool");
      return false;
    }
    *flags[at - std::begin(kBy)] = true;
  }
  // Tools are counted per server because different servers may use the same tool name.
  if (budget->by_tool) budget->by_server = true;
  return true;
}

}  // namespace

std::optional<Budget> read_budget(const Table &table) {
  if (!table.is_table()) return std::nullopt;
  table.only(kBudgetKeys);
  Budget budget;
  int given = 0;
  bool good = true;
  constexpr Budget::What whats[] = {Budget::What::calls, Budget::What::bytes,
                                    Budget::What::destinations};
  for (std::size_t i = 0; i < std::size(whats); ++i) {
    if (table.find(kBudgetKeys[i]) == nullptr) continue;
    ++given;
    budget.what = whats[i];
    const std::int64_t most = whats[i] == Budget::What::destinations ? 1000 : 1'000'000'000'000;
    const auto number = table.integer(kBudgetKeys[i]);
    if (!number || *number < 1 || *number > most) {
      table.fault(kBudgetKeys[i], "must be a number from 1 to " + std::to_string(most));
      good = false;
    } else {
      budget.most = static_cast<std::uint64_t>(*number);
    }
  }
  if (given != 1) {
    table.fault({}, "exactly one of calls, bytes and destinations is required");
    good = false;
  }
  if (table.find("per") != nullptr) {
    const auto text = table.text("per");
    budget.per_ms = text ? duration_ms(*text) : 0;
    if (budget.per_ms == 0) {
      if (text)
        table.fault(
            "per",
            "must be a duration such as \"30s\", \"1m\", \"12h\" or \"7d\", at most 31 days");
      good = false;
    }
  }
  good = read_counting_keys(table, &budget) && good;
  if (!good) return std::nullopt;
  return budget;
}

}  // namespace bulkhead::rules
