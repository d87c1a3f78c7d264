// Opens the connection: the socket, and the handshake of a hybrid socket.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "connector-vsock/definition.hpp"

namespace connector_vsock {

// Starts a connection and returns its non-blocking socket, which becomes writable when the
// connection is established or has failed. Returns -1 on failure; errno has the reason.
int dial(const Definition &definition) noexcept;

// Returns the error of a connection attempt, or 0 if there is none.
int connect_error(int fd) noexcept;

// Returns the request line of the hybrid handshake.
std::string hybrid_request(const Definition &definition);

inline constexpr std::size_t max_hybrid_answer = 64;  // bytes, including the newline

enum class Hybrid { more, accepted, refused };
// Parses the answer of a hybrid socket. accepted: the answer is the first *size bytes of `in`.
Hybrid hybrid_answer(std::string_view in, std::size_t *size) noexcept;

// Returns an error text with the cause of a failed connection and the remedy.
std::string explain(const Definition &definition, int error);

}  // namespace connector_vsock
