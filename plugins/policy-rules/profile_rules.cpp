#include "profile_rules.hpp"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "json_text.hpp"

namespace bulkhead::rules {
namespace {

std::string_view text_or_nothing(const rapidjson::Value &object, std::string_view name) {
  const rapidjson::Value *found = member(object, name);
  return found != nullptr && found->IsString() ? text_of(*found) : std::string_view{};
}

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, corner + (a[i] == b[j] ? 0 : 1)});
      corner = above;
    }
  }
  return row.back();
}

}  // namespace

std::string join(std::string_view path, std::string_view name) {
  const bool plain = !name.empty() && name.find_first_of(". \"") == std::string_view::npos;
  std::string out(path);
  if (!out.empty()) out += '.';
  return plain ? out.append(name) : out.append("\"").append(name).append("\"");
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> known) {
  if (word.empty() || word.size() > 64) return {};
  std::size_t best = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : known) {
    const std::size_t d = distance(word, candidate);
    if (d >= best) continue;
    best = d;
    found = candidate;
  }
  return found;
}

std::uint32_t Layer::line(std::string_view path) const {
  for (;;) {
    const auto found = lines.find(path);
    if (found != lines.end()) return found->second;
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos) return 0;
    path = path.substr(0, dot);
  }
}

std::string Layer::place(std::string_view path) const {
  const std::string out = file.empty() ? "(" + name + ")" : file;
  const std::uint32_t number = line(path);
  return number == 0 ? out : out + ":" + std::to_string(number);
}

void Faults::add(const Layer &layer, std::string_view path, std::string_view what) {
  if (faults_.size() >= kMax) return;
  auto at = std::find(layers_.begin(), layers_.end(), layer.name + "\n" + layer.file);
  if (at == layers_.end()) at = layers_.insert(at, layer.name + "\n" + layer.file);
  faults_.push_back({static_cast<std::size_t>(at - layers_.begin()), layer.line(path),
                     layer.place(path) + ": " + std::string(path) + ": " + std::string(what)});
}

void Faults::add(std::string text) {
  if (faults_.size() < kMax) faults_.push_back({kMax, 0, std::move(text)});
}

std::vector<std::string> Faults::texts() const {
  std::vector<const Fault *> sorted;
  for (const Fault &each : faults_) sorted.push_back(&each);
  // Comparing the addresses keeps errors on the same line in the order in which they were added.
  std::sort(sorted.begin(), sorted.end(), [](const Fault *a, const Fault *b) {
    return std::tie(a->layer, a->line, a) < std::tie(b->layer, b->line, b);
  });
  std::vector<std::string> out;
  for (const Fault *each : sorted) out.push_back(each->text);
  return out;
}

bool Table::is_table() const {
  if (value_.IsObject()) return true;
  fault({}, "expected a table");
  return false;
}

void Table::only(std::span<const std::string_view> known) const {
  for (const auto &each : value_.GetObject()) {
    const std::string_view name = text_of(each.name);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    std::string text = "unknown key";
    if (const std::string_view near = nearest(name, known); !near.empty()) {
      text += "; did you mean \"" + std::string(near) + "\"?";
    }
    text += " Known: ";
    for (std::size_t i = 0; i < known.size(); ++i) text.append(i ? ", " : "").append(known[i]);
    fault(name, text);
  }
}

const rapidjson::Value *Table::find(std::string_view key) const {
  return member(value_, key);
}

std::optional<std::string> Table::text(std::string_view key) const {
  const rapidjson::Value *found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->IsString()) return std::string(text_of(*found));
  fault(key, "expected a string");
  return std::nullopt;
}

std::optional<bool> Table::flag(std::string_view key) const {
  const rapidjson::Value *found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->IsBool()) return found->GetBool();
  fault(key, "expected true or false");
  return std::nullopt;
}

std::optional<std::int64_t> Table::integer(std::string_view key) const {
  const rapidjson::Value *found = find(key);
  if (found == nullptr) return std::nullopt;
  if (found->IsInt64()) return found->GetInt64();
  fault(key, "expected a whole number");
  return std::nullopt;
}

std::optional<std::vector<std::string>> Table::texts(std::string_view key) const {
  const rapidjson::Value *found = find(key);
  if (found == nullptr) return std::nullopt;
  std::vector<std::string> out;
  if (found->IsString()) return std::vector<std::string>{std::string(text_of(*found))};
  bool good = found->IsArray();
  if (good) {
    for (const auto &item : found->GetArray()) {
      good = good && item.IsString();
      if (item.IsString()) out.emplace_back(text_of(item));
    }
  }
  if (good) return out;
  fault(key, "expected an array of strings");
  return std::nullopt;
}

Table Table::table(std::string_view key) const {
  return Table(layer_, join(path_, key), *find(key), faults_);
}

void Table::fault(std::string_view key, std::string_view what) const {
  faults_.add(layer_, key.empty() ? path_ : join(path_, key), what);
}

std::string Table::place(std::string_view key) const {
  return layer_.place(key.empty() ? path_ : join(path_, key));
}

std::vector<Layer> layers_of(const rapidjson::Value &config, Faults *faults) {
  std::vector<Layer> out;
  const rapidjson::Value *rules = member(config, "profile_rules");
  if (rules == nullptr) return out;
  if (!rules->IsArray()) {
    faults->add("profile_rules is not an array of layers");
    return out;
  }
  for (const auto &each : rules->GetArray()) {
    Layer layer;
    layer.name = text_or_nothing(each, "layer");
    layer.file = text_or_nothing(each, "file");
    layer.sections = member(each, "sections");
    const rapidjson::Value *lines = member(each, "lines");
    if (lines != nullptr && lines->IsObject()) {
      for (const auto &line : lines->GetObject()) {
        if (line.value.IsUint() && line.value.GetUint() > 0)
          layer.lines.emplace(text_of(line.name), line.value.GetUint());
      }
    }
    if (layer.sections == nullptr || !layer.sections->IsObject()) {
      faults->add("a layer of profile_rules has no table \"sections\"");
      continue;
    }
    out.push_back(std::move(layer));
  }
  return out;
}

}  // namespace bulkhead::rules
