// Defines key tables. A key table has one row for each key of a profile table; the row reads the
// key's value into a member. The rows are also used to detect unknown keys, to show defaults in
// `profile show`, and to test the documentation. Internal to the profile libraries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

// A key and its value while it is being read.
struct KeyValue {
  const Member &member;
  const std::string &path;  // for example, "naming.prefix"
  Context &context;

  Diagnostics &diagnostics() const { return context.diagnostics; }
  const Node &value() const { return member.value; }
  // Reports an error at the location of the value.
  void reject(std::string what) const {
    diagnostics().error(member.value.place, path, std::move(what));
  }
  // Reports an error at the location of the key.
  void reject_key(std::string what) const {
    diagnostics().error(member.place, path, std::move(what));
  }
};

// One row of a key table. T is the type that receives the values.
template <class T>
struct Key {
  std::string_view name;
  void (*read)(const Key &key, const KeyValue &input, T &target) = nullptr;
  // Formats the value in profile syntax. Null if `profile show` does not show the key's default.
  std::string (*show)(const Key &key, const T &source) = nullptr;
  void (*copy)(const T &from, T &to) = nullptr;  // copies the value; for numbers only
  // For numbers: the range; for lists: `most` is the maximum number of entries.
  std::uint64_t least = 0, most = 0;
  std::span<const Word> words = {};  // the allowed strings of a choice
  // For strings: returns the reason why the string is invalid, or an empty string if it is valid.
  std::string (*refused)(const std::string &text) = nullptr;
};

template <class T>
struct MemberPointer;
template <class C, class V>
struct MemberPointer<V C::*> {
  using Class = C;
  using Value = V;
};
template <auto member>
using ClassOf = typename MemberPointer<decltype(member)>::Class;
template <auto member>
using ValueOf = typename MemberPointer<decltype(member)>::Value;

// Returns the member of `target`. The type of `target` must be the member's class or convert to it.
template <auto member, class T>
ValueOf<member> &member_of(T &target) {
  return static_cast<ClassOf<member> &>(target).*member;
}

// A row for a key that is true or false.
template <auto member, class T = ClassOf<member>>
constexpr Key<T> flag(std::string_view name) {
  Key<T> key{name};
  key.read = [](const Key<T> &, const KeyValue &input, T &target) {
    if (const auto on = input.diagnostics().boolean(input.value(), input.path))
      member_of<member>(target) = *on;
  };
  if constexpr (std::is_same_v<T, ClassOf<member>>)
    key.show = [](const Key<T> &, const T &source) -> std::string {
      return source.*member ? "true" : "false";
    };
  return key;
}

// A row for a key that is an integer.
template <auto member, class T = ClassOf<member>>
constexpr Key<T> number(std::string_view name, std::uint64_t least, std::uint64_t most) {
  Key<T> key{name};
  key.least = least;
  key.most = most;
  key.read = [](const Key<T> &row, const KeyValue &input, T &target) {
    const auto value = input.diagnostics().integer(input.value(), input.path, row.least, row.most);
    if (value) member_of<member>(target) = static_cast<ValueOf<member>>(*value);
  };
  if constexpr (std::is_same_v<T, ClassOf<member>>) {
    key.show = [](const Key<T> &, const T &source) { return std::to_string(source.*member); };
    key.copy = [](const T &from, T &to) { to.*member = from.*member; };
  }
  return key;
}

// A row for a key whose value must be one of several strings. The member may have any type to which
// Word::value can be converted.
template <auto member, class T = ClassOf<member>>
constexpr Key<T> choice(std::string_view name, std::span<const Word> words) {
  Key<T> key{name};
  key.words = words;
  key.read = [](const Key<T> &row, const KeyValue &input, T &target) {
    if (const auto value = input.diagnostics().one_of(input.value(), input.path, row.words))
      member_of<member>(target) = static_cast<ValueOf<member>>(*value);
  };
  if constexpr (std::is_same_v<T, ClassOf<member>>)
    key.show = [](const Key<T> &row, const T &source) {
      return std::string(word_of(row.words, static_cast<int>(source.*member)));
    };
  return key;
}

// A row for a key that is a string. `refused` returns the reason why the string is invalid, or an
// empty string if it is valid.
template <auto member, class T = ClassOf<member>>
constexpr Key<T> text(std::string_view name, std::string (*refused)(const std::string &)) {
  Key<T> key{name};
  key.refused = refused;
  key.read = [](const Key<T> &row, const KeyValue &input, T &target) {
    auto value = input.diagnostics().string(input.value(), input.path);
    if (!value) return;
    if (std::string why = row.refused(*value); !why.empty())
      input.reject(std::move(why));
    else
      member_of<member>(target) = *std::move(value);
  };
  if constexpr (std::is_same_v<T, ClassOf<member>>)
    key.show = [](const Key<T> &, const T &source) { return source.*member; };
  return key;
}

// A row for a key that is an array of at most `most` strings.
template <auto member, class T = ClassOf<member>>
constexpr Key<T> texts(std::string_view name, std::size_t most) {
  Key<T> key{name};
  key.most = most;
  key.read = [](const Key<T> &row, const KeyValue &input, T &target) {
    auto list = input.diagnostics().strings(input.value(), input.path);
    if (!list) return;
    if (list->size() > row.most)
      input.reject_key("more than " + std::to_string(row.most) + " entries");
    else
      member_of<member>(target) = *std::move(list);
  };
  return key;
}

// A row for any other key. `read` reads the value.
template <class T>
constexpr Key<T> custom(std::string_view name,
                        void (*read)(const Key<T> &key, const KeyValue &input, T &target)) {
  return {name, read};
}

template <class T>
std::vector<std::string_view> names_of(std::span<const Key<T>> keys) {
  std::vector<std::string_view> out;
  for (const Key<T> &key : keys) out.push_back(key.name);
  return out;
}

// Reads each member of a table, using the row that has the member's name. Reports unknown members.
template <class T>
void read_keys(const Node &table, const std::string &path, std::span<const Key<T>> keys, T &target,
               Context &context) {
  if (!context.diagnostics.is_table(table, path)) return;
  for (const Member &member : table.members) {
    const auto row = std::find_if(keys.begin(), keys.end(),
                                  [&](const Key<T> &key) { return key.name == member.name; });
    if (row == keys.end())
      context.diagnostics.unknown_key(member, path, names_of(keys));
    else
      row->read(*row, {member, join(path, member.name), context}, target);
  }
}

}  // namespace bulkhead::profiles
