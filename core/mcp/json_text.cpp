// Implements the functions of scan.hpp for single JSON values.
#include <vector>

#include "bulkhead/cpp/text.hpp"
#include "mcp/json_cursor.hpp"
#include "mcp/json_names.hpp"
#include "mcp/open_names.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::mcp {
namespace {

using json::Cursor;

std::string_view between(const char *begin, const char *end) noexcept {
  return {begin, static_cast<std::size_t>(end - begin)};
}

}  // namespace

bool valid_json(std::string_view text, std::uint32_t max_depth) noexcept {
  Cursor cursor(text);
  cursor.skip_space();
  if (!cursor.value(max_depth)) return false;
  cursor.skip_space();
  return cursor.at_end();
}

bool for_each_item(std::string_view array, void *arg,
                   bool (*f)(void *arg, std::string_view item)) noexcept {
  Cursor cursor(array);
  cursor.skip_space();
  if (!cursor.consume('[')) return true;
  cursor.skip_space();
  bool more = !cursor.consume(']');
  while (more) {
    const char *start = cursor.at();
    if (!cursor.value(json::deepest)) return true;
    if (!f(arg, between(start, cursor.at()))) return false;
    if (!cursor.separator(']', &more)) return true;
  }
  return true;
}

bool for_each_element(std::string_view batch, void *arg,
                      bool (*f)(void *arg, std::string_view element)) noexcept {
  return for_each_item(batch, arg, f);
}

bool for_each_member(std::string_view object, void *arg,
                     bool (*f)(void *arg, std::string_view key, std::string_view value)) noexcept {
  Cursor cursor(object);
  cursor.skip_space();
  if (!cursor.consume('{')) return true;
  cursor.skip_space();
  bool more = !cursor.consume('}');
  while (more) {
    std::string_view inside;
    if (!cursor.key(&inside)) return true;
    const char *start = cursor.at();
    if (!cursor.value(json::deepest)) return true;
    const std::string_view key(inside.data() - 1, inside.size() + 2);
    if (!f(arg, key, between(start, cursor.at()))) return false;
    if (!cursor.separator('}', &more)) return true;
  }
  return true;
}

std::string_view member(std::string_view object, std::string_view key) noexcept {
  struct Search {
    std::string_view key;
    std::string_view found;
  } search{key, {}};
  for_each_member(object, &search, [](void *arg, std::string_view token, std::string_view value) {
    auto *s = static_cast<Search *>(arg);
    if (!json::same_text(token.substr(1, token.size() - 2), s->key)) return true;
    s->found = value;
    return false;
  });
  return search.found;
}

bool has_duplicate_members(std::string_view json) {
  json::OpenNames names(json);
  std::vector<bool> is_object;  // one per open level
  const char *end = json.data() + json.size();
  json::Fault fault;
  bool name_next = false;
  for (const char *p = json.data(); p < end;) {
    const char c = *p++;
    if (c == '{' || c == '[') {
      is_object.push_back(c == '{');
      if (c == '{') names.open_object();
      name_next = c == '{';
    } else if (c == '}' || c == ']') {
      if (is_object.empty() || is_object.back() != (c == '}')) return false;
      is_object.pop_back();
      if (c == '}' && names.close_object()) return true;
      name_next = false;
    } else if (c == ',') {
      name_next = !is_object.empty() && is_object.back();
    } else if (c == '"') {
      const char *behind = json::string_end(p, end, &fault);
      if (behind == nullptr) return false;
      if (name_next) names.add(between(p, behind - 1));
      name_next = false;
      p = behind;
    }
  }
  return false;
}

std::string_view unquote(std::string_view token, std::string *scratch) {
  if (token.size() < 2 || token.front() != '"') return {};
  const std::string_view inside = token.substr(1, token.size() - 2);
  std::size_t slash = inside.find('\\');
  if (slash == inside.npos) return inside;
  scratch->assign(inside.substr(0, slash));
  scratch->reserve(inside.size());
  json::Unescape text(inside.substr(slash));
  while (!text.done()) {
    bh::append_utf8(scratch, text.next());
  }
  return *scratch;
}

}  // namespace bulkhead::mcp
