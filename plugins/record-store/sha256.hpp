// SHA-256 with the processor's SHA instructions if available, else with libsodium. The instructions
// halve the time for hashing recorded rows.
//
// Thread: any.
#pragma once

#include <array>
#include <string_view>

namespace record_store {

using Hash = std::array<unsigned char, 32>;

Hash sha256(std::string_view bytes);

}  // namespace record_store
