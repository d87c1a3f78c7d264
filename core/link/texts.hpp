// Payloads of more than one part.
#pragma once

#include <string>

#include "base/archive.hpp"

namespace bulkhead::link {

struct CallText {
  std::string method, name, arguments;
};
template <class Ar>
void archive(Ar &ar, CallText &v) {
  auto &[method, name, arguments] = v;
  ar(method, name, arguments);
}

struct Progress {
  double value = 0, total = 0;
  std::string message;
};
template <class Ar>
void archive(Ar &ar, Progress &v) {
  auto &[value, total, message] = v;
  ar(value, total, message);
}

}  // namespace bulkhead::link
