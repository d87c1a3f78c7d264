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

  // From an event of the reactor. reached: once, the service has taken something, so it is there.
  // ended: once, nothing can pass any more; then destroy the splice.
  struct Events {
    void (*reached)(void *arg);
    void (*ended)(void *arg, Splice &splice);
    void *arg;
  };

  // Takes both descriptors over. `early`: what the first one has sent already. The service's
  // connection may still be under way.
  Splice(const bh::Host &host, int guest, int service, std::string_view early,
         const Events &events);
  ~Splice();
  Splice(const Splice &) = delete;
  Splice &operator=(const Splice &) = delete;

  bool start();  // false: the host cannot watch them
  // errno of a service that was never reached; 0: it was, or the guest left before that.
  int unreached() const noexcept { return reached_ ? 0 : error_; }

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
  void service_took() noexcept;
  void service_failed(int error) noexcept;
  bool over() const noexcept;
  bool want(Side &side, const Side &other);

  const bh::Host &host_;
  Side sides_[2];  // guest, service
  const Events events_;
  bool reached_ = false;
  int error_ = 0;  // of the service, before it was reached
};

}  // namespace transport_vsock
