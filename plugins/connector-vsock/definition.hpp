// Parses a server's definition: the address of the endpoint and the contents of the metadata line.
//
//   {"cid": 2, "port": 5002}                     AF_VSOCK; the values shown are the defaults
//   {"unix": "/run/endpoint.sock"}               a Unix socket
//   {"hybrid": "/run/vm.sock", "port": 5002}     a Unix socket with a handshake as in Firecracker:
//                                                request "CONNECT port", response "OK ..."
//   "meta_prefix": "CAPSEM_META"                 prefix of the metadata line
//   "process_name": "claude"                     the client process; sanitized
//   "duplex": true                               accept server-initiated messages
//   "max_message_bytes": 1048000                 largest message that the endpoint supports
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
  std::string path;  // for unix_socket and hybrid
  std::string meta_prefix = "CAPSEM_META";
  std::string process_name;
  bool duplex = true;
  std::uint32_t max_message_bytes = 0;  // 0 means the maximum of the frame format

  std::size_t max_total() const noexcept;  // maximum total length of a frame
  // Returns the address for log messages: "vsock:2:5002", "unix:/run/endpoint.sock" or
  // "hybrid:/run/vm.sock:5002".
  std::string address() const;
};

// Parses a definition. Unknown members are ignored. Returns BH_E_INVALID and an error that names
// the member if a member is invalid.
bh_status parse_definition(std::string_view json, Definition *out, bh_error *error);

}  // namespace connector_vsock
