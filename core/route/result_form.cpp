#include "route/result_form.hpp"

namespace bulkhead {

std::string members_in_front(const ResultForm &form, std::string_view result) {
  if (!result.starts_with('{')) return {};
  std::string out(form.members(result));
  const std::size_t first = result.find_first_not_of(" \t\r\n", 1);
  if (!out.empty() && first != std::string_view::npos && result[first] != '}') out += ',';
  return out;
}

std::string formed_result(const ResultForm &form, std::string_view result) {
  std::string out(result);
  out.insert(out.empty() ? 0 : 1, members_in_front(form, result));
  return out;
}

}  // namespace bulkhead
