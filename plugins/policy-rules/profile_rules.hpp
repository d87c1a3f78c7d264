// Reads the configuration that the host passes to the plugin, and collects its errors. The
// configuration consists of the profile's layers ("profile_rules") with the line numbers of their
// keys.
#pragma once

#include <rapidjson/document.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bulkhead::rules {

// One layer of the profile. Borrows the configuration's JSON.
struct Layer {
  std::string name, file;
  const rapidjson::Value *sections = nullptr;                 // an object
  std::unordered_map<std::string_view, std::uint32_t> lines;  // line numbers by path

  bool is_corp() const { return name == "corp"; }
  // Returns the line of the key `path` or of its nearest parent with a known line, or 0.
  std::uint32_t line(std::string_view path) const;
  // Returns "FILE:LINE", or "FILE" if the line is unknown. A layer without a file is "(NAME)".
  std::string place(std::string_view path) const;
};

// Appends a name to a path, as in "a.b". Quotes the name if it is empty or contains a dot, a space
// or a quotation mark.
std::string join(std::string_view path, std::string_view name);

// Returns the known name that is most similar to `word`, for use in a suggestion. Returns an empty
// string if none is similar.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// Collects the errors of all layers, up to kMax.
class Faults {
 public:
  static constexpr std::size_t kMax = 100;

  void add(const Layer &layer, std::string_view path, std::string_view what);
  void add(std::string text);  // for an error that does not belong to a layer
  // Returns the errors sorted by layer and line. Errors that do not belong to a layer come last.
  std::vector<std::string> texts() const;
  bool any() const { return !faults_.empty(); }

 private:
  struct Fault {
    std::size_t layer;  // index in layers_
    std::uint32_t line;
    std::string text;
  };
  std::vector<Fault> faults_;
  std::vector<std::string> layers_;
};

// Reads the keys of a table. Reports values of the wrong type as errors.
class Table {
 public:
  Table(const Layer &layer, std::string path, const rapidjson::Value &value, Faults &faults)
      : layer_(layer), path_(std::move(path)), value_(value), faults_(faults) {}

  // is_table() reports an error if the value is not a table. only() reports all keys that are not
  // in `known`, and suggests the most similar known key for each.
  bool is_table() const;
  void only(std::span<const std::string_view> known) const;

  const rapidjson::Value *find(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  // Reads a list of strings. A single string is accepted as a list with one element.
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  Table table(std::string_view key) const;  // requires the key
  // If `key` is empty, the error refers to the table itself.
  void fault(std::string_view key, std::string_view what) const;

  const Layer &layer() const { return layer_; }
  const std::string &path() const { return path_; }
  const rapidjson::Value &value() const { return value_; }
  std::string place(std::string_view key = {}) const;

 private:
  const Layer &layer_;
  const std::string path_;
  const rapidjson::Value &value_;
  Faults &faults_;
};

// Returns the layers in a configuration. If the data from the host is malformed, adds an error.
std::vector<Layer> layers_of(const rapidjson::Value &config, Faults *faults);

}  // namespace bulkhead::rules
