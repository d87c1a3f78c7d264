#include "approve/definition_text.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "approve/approve_text.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

// Returns true if a member name needs no quotes in a path.
bool needs_no_quotes(std::string_view name) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '$';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), plain);
}

std::string member_path(const std::string &path, std::string_view name) {
  return path + (path.empty() ? "" : ".") +
         (needs_no_quotes(name) ? std::string(name) : verbatim(name));
}

// Collects the values in a definition. Each path repeats the names of the enclosing members, so a
// short definition can produce very long lines. The total size of the lines is therefore limited.
class LineCollector {
 public:
  // Adds the values in `json`, which must be valid and have no surrounding white space. The
  // scanner's maximum nesting depth limits the recursion.
  void add(const std::string &path, std::string_view json) {
    const std::size_t before = lines_.size();
    std::string scratch;
    if (full()) return;
    if (json.starts_with('{')) {
      mcp::for_each_member(json, [&](std::string_view key, std::string_view value) {
        add(member_path(path, mcp::unquote(key, &scratch)), value);
      });
      if (lines_.size() == before) push(path, "{}");
    } else if (json.starts_with('[')) {
      mcp::for_each_item(json, [&, n = 0](std::string_view value) mutable {
        add(path + "[" + std::to_string(n++) + "]", value);
      });
      if (lines_.size() == before) push(path, "[]");
    } else {
      const bool text = json.starts_with('"');
      push(path, text ? verbatim(mcp::unquote(json, &scratch)) : std::string(json));
    }
  }
  bool full() const { return bytes_ > max_definition_lines_bytes; }
  std::vector<DefinitionLine> take() { return std::move(lines_); }

 private:
  void push(const std::string &path, std::string value) {
    bytes_ += path.size() + value.size();
    lines_.push_back({path, std::move(value)});
  }

  std::vector<DefinitionLine> lines_;
  std::size_t bytes_ = 0;
};

void append_text(std::string *out, std::string_view mark, const DefinitionLine &line) {
  out->append("    ").append(mark).append(line.path).append(": ").append(line.value).append("\n");
}

// Formats the differences, ordered by path. If a path has both a removed and an added value, the
// removed value comes first.
std::string diff_text(const DefinitionDiff &diff) {
  std::string out;
  auto added = diff.added.begin();
  for (const DefinitionLine &line : diff.removed) {
    for (; added != diff.added.end() && added->path < line.path; ++added) {
      append_text(&out, "+ ", *added);
    }
    append_text(&out, "- ", line);
  }
  for (; added != diff.added.end(); ++added) append_text(&out, "+ ", *added);
  return out;
}

std::string lines_text(std::string_view definition) {
  std::string out;
  for (const DefinitionLine &line : definition_lines(definition)) append_text(&out, "", line);
  return out;
}

// Compares the stored descriptions. Used if one of the definitions is not stored.
std::string about_descriptions(const StoredPin &pin) {
  const bool both = !(pin.text.empty() && pin.definition.empty()) &&
                    !(pin.seen_text.empty() && pin.seen_definition.empty());
  if (!both) return "unknown";
  if (pin.text != pin.seen_text) return "the description changed";
  // A description longer than this may have been truncated when it was stored.
  const bool whole = pin.text.size() + 4 <= max_pin_text_bytes;
  return std::string(whole ? "the description" : "the stored part of the description") +
         " is unchanged; the input schema, annotations or other members changed";
}

}  // namespace

std::vector<DefinitionLine> definition_lines(std::string_view definition) {
  if (!definition.starts_with('{') || !mcp::valid_json(definition)) return {};
  LineCollector lines;
  lines.add("", definition);
  if (lines.full()) return {{"definition", verbatim(definition)}};
  return lines.take();
}

DefinitionDiff compare_definitions(std::string_view approved, std::string_view current) {
  auto before = definition_lines(approved), after = definition_lines(current);
  std::sort(before.begin(), before.end());
  std::sort(after.begin(), after.end());
  DefinitionDiff diff;
  std::set_difference(before.begin(), before.end(), after.begin(), after.end(),
                      std::back_inserter(diff.removed));
  std::set_difference(after.begin(), after.end(), before.begin(), before.end(),
                      std::back_inserter(diff.added));
  return diff;
}

std::string describe_definitions(const StoredPin &pin) {
  const bool changed = !pin.pin.hash.empty() && !pin.pin.seen.empty();
  const std::string &current = pin.pin.seen.empty() ? pin.definition : pin.seen_definition;
  if (changed && !pin.definition.empty() && !current.empty()) {
    const std::string text = diff_text(compare_definitions(pin.definition, current));
    if (!text.empty()) return "  differences (- approved, + now)\n" + text;
    return "  differences: only white space, escape sequences or the order of members\n";
  }
  std::string out;
  if (changed) out += "  differences: " + about_descriptions(pin) + "\n";
  if (changed && pin.definition.empty()) out += "  the approved definition is not stored\n";
  if (current.empty()) return out + "  the current definition is not stored\n";
  return out + (pin.pin.seen.empty() ? "  definition\n" : "  current definition\n") +
         lines_text(current);
}

std::string differences_json(const StoredPin &pin) {
  if (pin.definition.empty() || pin.seen_definition.empty()) return "null";
  std::string out;
  bh::json::Writer json(&out);
  json.begin_array();
  const DefinitionDiff diff = compare_definitions(pin.definition, pin.seen_definition);
  const auto add = [&json](std::string_view change, const std::vector<DefinitionLine> &lines) {
    for (const DefinitionLine &line : lines) {
      json.begin_object().member("change", change).member("path", line.path);
      json.member("value", line.value).end_object();
    }
  };
  add("removed", diff.removed);
  add("added", diff.added);
  json.end_array();
  return out;
}

}  // namespace bulkhead::program
