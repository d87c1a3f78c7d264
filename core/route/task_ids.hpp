// The task ids that clients receive. Each contains the id that the task has on its server, the name
// of the server, and the tool whose call created the task. It is encrypted and authenticated, and
// can be opened only for the same transport and principal, until it expires. The gateway therefore
// needs no memory of a task to find its server, and equal ids of two servers do not collide.
//
// Each connection to a stdio server is a process of its own, which does not know the tasks of the
// others and may use the same ids. The id therefore also contains the connection, and is valid only
// in the process of the gateway that has opened the connection.
//
// Ids for other servers stay valid when the endpoint restarts, because the task continues on its
// server. All ids become invalid when the gateway restarts, because the key changes.
//
// Thread-safe. Owned by the Router.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "route/text_sealer.hpp"

namespace bulkhead {

struct Session;

struct TaskId {
  std::string server;
  std::string tool;              // the server's name for the tool
  std::string id;                // JSON string, as the server wrote it
  std::uint64_t connection = 0;  // handle of the lane's connection; 0: any connection to the server
};

class TaskIds {
 public:
  // Limit for a server's id, as a JSON string, and for the names. In bytes.
  static constexpr std::size_t max_id = 1'024, max_name = 1'024;

  // `key` is HostOptions::sealing_key. If it is empty, a random key is used.
  explicit TaskIds(std::string_view key);

  // Returns a JSON string for the client. Returns nullopt if a part is longer than its limit, a
  // name contains a NUL, or the server's id is not a JSON string. Times are on the machine's
  // monotonic clock.
  std::optional<std::string> seal(const TaskId &task, const Session &session,
                                  std::uint64_t expires_ns) const;
  // Opens an id (a JSON string) that a client has sent. Returns nullopt if the id has expired, was
  // issued for another transport or principal, belongs to a connection of another process, or was
  // not issued by this gateway.
  std::optional<TaskId> open(std::string_view token, const Session &session,
                             std::uint64_t now_ns) const;

 private:
  const TextSealer sealer_;
  const std::uint64_t run_;  // random; identifies this process
};

}  // namespace bulkhead
