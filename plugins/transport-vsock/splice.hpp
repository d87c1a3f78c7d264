// Forwards data between two sockets in both directions, with limited buffers. Used to connect a
// guest that does not speak MCP to the hand-off service. Runs on the reactor thread.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <string_view>

#include "stdio-lines/bytes.hpp"

namespace transport_vsock {

class Splice {
 public:
  static constexpr std::size_t buffer_bytes = 64u << 10;  // per direction

  // Callbacks, which are called during reactor events. `reached` is called once, when the service
  // has accepted data. `ended` is called once, when both directions are closed; the owner then
  // destroys the splice.
  struct Events {
    void (*reached)(void *arg);
    void (*ended)(void *arg, Splice &splice);
    void *arg;
  };

  // Takes ownership of both descriptors. `early` contains the bytes that the guest has already
  // sent. The socket of the service may still be connecting.
  Splice(const bh::Host &host, int guest, int service, std::string_view early,
         const Events &events);
  ~Splice();
  Splice(const Splice &) = delete;
  Splice &operator=(const Splice &) = delete;

  bool start();  // returns false if the host cannot watch the sockets
  // Returns the errno value if the service could not be reached. Returns 0 if it was reached, or if
  // the guest disconnected before that.
  int unreached() const noexcept { return reached_ ? 0 : error_; }

  std::size_t index = 0;      // used only by the owner
  std::uint32_t peer_id = 0;  // used only by the owner

 private:
  struct Side {
    int fd = -1;
    bh_watch watch = 0;
    std::uint32_t events = 0;
    bool ended = false;      // end of input
    bool told = false;       // half-closed, because the other side's input has ended
    bool gone = false;       // write error; the remaining input is still read
    stdio_lines::Bytes out;  // queued output
    std::size_t done = 0;    // bytes of `out` already written
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
  int error_ = 0;  // error before the service was reached
};

}  // namespace transport_vsock
