// Connects to the endpoint: creates the socket, formats the request of the hybrid handshake, and
// parses the response.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "connector-vsock/definition.hpp"

namespace connector_vsock {

// Starts a connection attempt and returns its non-blocking socket. The socket becomes writable when
// the attempt succeeds or fails. Returns -1 and sets errno on failure.
int dial(const Definition &definition) noexcept;

// Returns the error of the connection attempt, or 0 if it succeeded.
int connect_error(int fd) noexcept;

// Returns the request line of the hybrid handshake.
std::string hybrid_request(const Definition &definition);

inline constexpr std::size_t max_hybrid_answer = 64;  // bytes, including the newline

enum class Hybrid { more, accepted, refused };
// Parses the response from a hybrid socket. If the connection was accepted, the response is the
// first *size bytes of `in`.
Hybrid hybrid_answer(std::string_view in, std::size_t *size) noexcept;

// Returns an error message for a failed connection attempt: the name of the error and, if known,
// its cause.
std::string explain(const Definition &definition, int error);

}  // namespace connector_vsock
