// SHA-256. Uses the processor's SHA instructions if available, otherwise libsodium.
//
// libsodium does not use these instructions: a row of 512 bytes takes 400 ns here and 2,900 ns in
// libsodium. libcrypto uses them, but no process that hashes rows loads it. It would add 0.5 MiB of
// private memory and 4 ms of start time to each process.
//
// Thread-safe.
#pragma once

#include <array>
#include <string_view>

namespace record_store {

using Hash = std::array<unsigned char, 32>;

Hash sha256(std::string_view bytes);

}  // namespace record_store
