// Two sockets of which each gets what the other one sends, with bounded buffers: a connection that
// is not MCP, and the service that it is handed to. Thread: the reactor's.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace transport_vsock {

class Splice {
 public:
  static constexpr std::size_t buffer_bytes = 64u << 10;  // in each direction

  // Takes both descriptors over. `early`: what the first one has sent already. ended(arg) is called
  // once, from an event of the reactor, when nothing can pass any more; then destroy this.
  Splice(const bh::Host &host, int guest, int service, std::string_view early,
         void (*ended)(void *arg, Splice &splice), void *arg);
  ~Splice();
  Splice(const Splice &) = delete;
  Splice &operator=(const Splice &) = delete;

  bool start();  // false: the host cannot watch them

  std::size_t index = 0;      // the owner's
  std::uint32_t peer_id = 0;  // the owner's

 private:
  struct Side {
    int fd = -1;
    bh_watch watch = 0;
    std::uint32_t events = 0;
    bool ended = false;      // sends no more
    bool told = false;       // has been told that the other one sends no more
    bool gone = false;       // takes no more; what it has sent is still read
    stdio_lines::Bytes out;  // waits for it
    std::size_t done = 0;    // of out, already written
  };

  static void on_event(void *arg, std::int32_t fd, std::uint32_t events) noexcept;
  void handle(Side &side, Side &other, std::uint32_t events);
  void read(Side &from, Side &to);
  void write(Side &to);
  void pass_end(Side &from, Side &to);
  void lose(Side &side);
  bool over() const noexcept;
  bool want(Side &side, const Side &other);

  const bh::Host &host_;
  Side sides_[2];  // guest, service
  void (*const ended_)(void *, Splice &);
  void *const arg_;
};

}  // namespace transport_vsock
