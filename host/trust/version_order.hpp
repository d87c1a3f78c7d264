// Compares version numbers of plugins. Thread-safe.
#pragma once

#include <compare>
#include <string_view>

namespace bulkhead::program {

// Compares two versions in the order of Semantic Versioning: numbers separated by dots, compared
// from left to right, where missing numbers are 0. A version with a suffix ("-rc.1") precedes the
// one without it. Suffixes are compared part by part: numbers by value, before words, which are
// compared by bytes. Everything after "+" is ignored. A part in front of the suffix that is not a
// number is compared like a word.
std::weak_ordering compare_versions(std::string_view a, std::string_view b);

}  // namespace bulkhead::program
