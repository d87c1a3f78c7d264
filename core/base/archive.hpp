// Binary serialization of the data that the processes of this program exchange. The format contains
// neither member names nor a version number, because all processes run the same executable. Data
// that is stored in a file therefore needs its own version number. The sender may be compromised,
// so the reader checks every length. After an error, every further read yields an empty value.
//
// To make a type serializable, define a function that passes all of its members to the archive:
//
//   template <class Ar> void archive(Ar &ar, Limits &v) { auto &[a, b] = v; ar(a, b); }
//
// The structured binding ensures that no member is forgotten: if it does not name every member, the
// code does not compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace bulkhead {

class ArchiveWriter {
 public:
  static constexpr bool reading = false;
  ArchiveWriter() = default;
  // The output starts with `before`, followed by the serialized values.
  explicit ArchiveWriter(std::string before) : out_(std::move(before)) {}
  template <class... T>
  void operator()(const T &...values) {
    (one(values), ...);
  }
  std::size_t size() const noexcept { return out_.size(); }
  std::string take() { return std::move(out_); }

 private:
  template <class T>
  void one(const T &value) {
    if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      out_.append(reinterpret_cast<const char *>(&value), sizeof value);
    } else {
      archive(*this, const_cast<T &>(value));
    }
  }
  void one(const std::string &value) { one(std::string_view(value)); }
  void one(std::string_view value) {
    count(value.size());
    out_.append(value);
  }
  template <class T>
  void one(const std::vector<T> &values) {
    count(values.size());
    for (const T &value : values) one(value);
  }
  template <class T, std::size_t N>
  void one(const std::array<T, N> &values) {
    for (const T &value : values) one(value);
  }
  template <class K, class V, class Less>
  void one(const std::map<K, V, Less> &values) {
    count(values.size());
    for (const auto &[key, value] : values) (*this)(key, value);
  }
  template <class T>
  void one(const std::optional<T> &value) {
    one(value.has_value());
    if (value.has_value()) one(*value);
  }
  template <class A, class B>
  void one(const std::pair<A, B> &value) {
    (*this)(value.first, value.second);
  }
  void count(std::size_t n) { one(static_cast<std::uint32_t>(n)); }

  std::string out_;
};

class ArchiveReader {
 public:
  static constexpr bool reading = true;
  explicit ArchiveReader(std::string_view bytes) : bytes_(bytes) {}
  template <class... T>
  void operator()(T &...values) {
    (one(values), ...);
  }
  // Returns true if no error occurred and all input was consumed.
  bool done() const noexcept { return !failed_ && bytes_.empty(); }

 private:
  template <class T>
  void one(T &value) {
    if constexpr (std::is_same_v<T, bool>) {
      std::uint8_t byte = 0;
      one(byte);
      value = byte != 0;
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      value = T{};
      if (failed_ || bytes_.size() < sizeof value) return fail();
      bytes_.copy(reinterpret_cast<char *>(&value), sizeof value);
      bytes_.remove_prefix(sizeof value);
    } else {
      archive(*this, value);
    }
  }
  void one(std::string &value) {
    std::string_view text;
    one(text);
    value.assign(text);
  }
  // Sets `value` to a view of the input, which must outlive it.
  void one(std::string_view &value) {
    const std::uint32_t n = count();
    value = bytes_.substr(0, n);
    bytes_.remove_prefix(n);
  }
  template <class T>
  void one(std::vector<T> &values) {
    values.clear();
    for (std::uint32_t n = count(); n > 0 && !failed_; --n) one(values.emplace_back());
  }
  template <class T, std::size_t N>
  void one(std::array<T, N> &values) {
    for (T &value : values) one(value);
  }
  template <class K, class V, class Less>
  void one(std::map<K, V, Less> &values) {
    values.clear();
    for (std::uint32_t n = count(); n > 0 && !failed_; --n) {
      std::pair<K, V> item;
      one(item);
      values.insert(std::move(item));
    }
  }
  template <class T>
  void one(std::optional<T> &value) {
    bool has = false;
    one(has);
    value.reset();
    if (has) one(value.emplace());
  }
  template <class A, class B>
  void one(std::pair<A, B> &value) {
    (*this)(value.first, value.second);
  }
  // Reads an element count. A count greater than the number of remaining bytes is an error, because
  // each element takes at least one byte.
  std::uint32_t count() {
    std::uint32_t n = 0;
    one(n);
    if (n > bytes_.size()) fail();
    return failed_ ? 0 : n;
  }
  void fail() noexcept {
    failed_ = true;
    bytes_ = {};
  }

  std::string_view bytes_;
  bool failed_ = false;
};

template <class T>
std::string to_bytes(const T &value) {
  ArchiveWriter writer;
  writer(value);
  return writer.take();
}

// Deserializes `bytes` into *value. Returns false if the bytes are invalid; *value is then
// unspecified.
template <class T>
bool from_bytes(std::string_view bytes, T *value) {
  ArchiveReader reader(bytes);
  reader(*value);
  return reader.done();
}

}  // namespace bulkhead
