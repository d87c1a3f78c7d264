// Error handling without exceptions: a Result holds a T or an Error. The error's text is a message
// for the user.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "bulkhead/abi/core.h"

namespace bulkhead {

struct Error {
  bh_status code = BH_E_INTERNAL;
  std::string text;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(bh_status code, std::string text) {
  return std::unexpected(Error{code, std::move(text)});
}

}  // namespace bulkhead
