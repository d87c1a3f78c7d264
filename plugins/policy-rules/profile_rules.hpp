// The rules of a profile as received from the host ("profile_rules" in the configuration): layers,
// the line numbers of keys, and errors.
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

// One layer of the profile. Refers to the configuration.
struct Layer {
  std::string name, file;
  const rapidjson::Value *sections = nullptr;                 // an object
  std::unordered_map<std::string_view, std::uint32_t> lines;  // by path

  bool is_corp() const { return name == "corp"; }
  std::uint32_t line(std::string_view path) const;  // nearest known line, or 0
  // Returns "FILE:LINE", or "FILE" if the line is unknown.
  std::string place(std::string_view path) const;
};

// Returns the path "a.b". An ambiguous name is written in double quotes.
std::string join(std::string_view path, std::string_view name);

// Returns the known name most similar to `word`, or an empty string.
std::string_view nearest(std::string_view word, std::span<const std::string_view> known);

// Collects up to kMax errors of all layers.
class Faults {
 public:
  static constexpr std::size_t kMax = 100;

  void add(const Layer &layer, std::string_view path, std::string_view what);
  void add(std::string text);  // an error without a layer
  // Returns the errors sorted by layer and line. Errors without a layer come last.
  std::vector<std::string> texts() const;
  bool any() const { return !faults_.empty(); }

 private:
  struct Fault {
    std::size_t layer;  // index among the layers with errors
    std::uint32_t line;
    std::string text;
  };
  std::vector<Fault> faults_;
  std::vector<std::string> layers_;
};

// A table with typed keys. Invalid values are reported as faults.
class Table {
 public:
  Table(const Layer &layer, std::string path, const rapidjson::Value &value, Faults &faults)
      : layer_(layer), path_(std::move(path)), value_(value), faults_(faults) {}

  // is_table() reports a fault if the value is not a table. only() reports unknown keys as faults
  // and suggests the most similar known key.
  bool is_table() const;
  void only(std::span<const std::string_view> known) const;

  const rapidjson::Value *find(std::string_view key) const;
  std::optional<std::string> text(std::string_view key) const;
  std::optional<bool> flag(std::string_view key) const;
  std::optional<std::int64_t> integer(std::string_view key) const;
  // Reads a list of strings. A single string is treated as a list with one element.
  std::optional<std::vector<std::string>> texts(std::string_view key) const;
  Table table(std::string_view key) const;                        // the key must exist
  void fault(std::string_view key, std::string_view what) const;  // an empty key means the table

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

// Returns the layers of a configuration. Adds faults if the data from the host is malformed.
std::vector<Layer> layers_of(const rapidjson::Value &config, Faults *faults);

}  // namespace bulkhead::rules
