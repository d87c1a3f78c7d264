// Where the endpoint is and how we introduce ourselves, as the server's definition says it:
//
//   {"cid": 2, "port": 5002}                     AF_VSOCK; both are the defaults
//   {"unix": "/run/endpoint.sock"}               a Unix socket
//   {"hybrid": "/run/vm.sock", "port": 5002}     a Unix socket that asks "CONNECT port" and is
//                                                answered "OK ...", as Firecracker's
//   "meta_prefix": "CAPSEM_META"                 of the line at the beginning of a connection
//   "process_name": "claude"                     whose messages these are; cleaned
//   "duplex": true                               offer the endpoint to send messages of its own
#pragma once

#include <bulkhead/cpp/basics.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace connector_vsock {

enum class AddressKind : std::uint8_t { vsock, unix_socket, hybrid };

struct Definition {
  AddressKind kind = AddressKind::vsock;
  std::uint32_t cid = 2;
  std::uint32_t port = 5002;
  std::string path;  // of unix_socket and hybrid
  std::string meta_prefix = "CAPSEM_META";
  std::string process_name;
  bool duplex = true;

  // "vsock:2:5002", "unix:/run/endpoint.sock", "hybrid:/run/vm.sock:5002"
  std::string address() const;
};

// Other members are left to others. BH_E_INVALID names the member.
bh_status parse_definition(std::string_view json, Definition *out, bh_error *error);

}  // namespace connector_vsock
