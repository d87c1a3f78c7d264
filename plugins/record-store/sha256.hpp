// Computes SHA-256 with the processor's SHA instructions if they are available, and otherwise with
// libsodium.
//
// libsodium does not use these instructions: hashing a row of 512 bytes takes 400 ns here, but
// 2,900 ns in libsodium. libcrypto uses them, but would add 0.5 MiB of private memory and 4 ms of
// start time to each process that hashes rows.
//
// Thread-safe.
#pragma once

#include <array>
#include <string_view>

namespace record_store {

using Hash = std::array<unsigned char, 32>;

Hash sha256(std::string_view bytes);

}  // namespace record_store
