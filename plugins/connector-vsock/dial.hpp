// Opening the connection: the socket, and the dialogue that a hybrid socket asks for.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "connector-vsock/definition.hpp"

namespace connector_vsock {

// A non-blocking socket whose connection is under way or stands: writable when it is known which.
// -1 with errno.
int dial(const Definition &definition) noexcept;

// What went wrong with the connection under way, 0 if nothing.
int connect_error(int fd) noexcept;

// What a hybrid socket is told first.
std::string hybrid_request(const Definition &definition);

inline constexpr std::size_t max_hybrid_answer = 64;  // bytes, newline included

enum class Hybrid { more, accepted, refused };
// Looks at what it has said. accepted: *size bytes of `in` are its answer.
Hybrid hybrid_answer(std::string_view in, std::size_t *size) noexcept;

// For people: what the error of a connection means and what to do about it.
std::string explain(const Definition &definition, int error);

}  // namespace connector_vsock
