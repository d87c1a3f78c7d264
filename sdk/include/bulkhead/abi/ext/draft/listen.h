/* Draft: sockets opened by the host. In its listen(), a transport requests listening sockets
 * instead of creating them. They belong to a process that outlives the transport, so clients that
 * connect while a crashed endpoint restarts are queued, not refused. In a compartment without
 * network access, open() and dial() are the only ways to get sockets. Draft ids may change between
 * minor versions.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_LISTEN_H
#define BULKHEAD_ABI_EXT_DRAFT_LISTEN_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HOST_LISTEN "bh.host.listen/1"

typedef struct bh_host_listen {
  uint32_t size;
  uint32_t reserved;

  /* Returns a listening stream socket bound to `address` (the bytes of a struct sockaddr: AF_INET,
   * AF_INET6, AF_UNIX with a path or AF_VSOCK). It is non-blocking and close-on-exec, with
   * TCP_NODELAY set. The caller closes the descriptor; the host removes the file of a Unix socket
   * (mode 0600). The error text contains as_configured and a remedy. May be called only inside
   * bh_transport.listen(). [control] */
  bh_status (*open)(void *ctx, const void *address, uint32_t address_size, bh_str as_configured,
                    int32_t *fd, bh_error *error);

  /* Declares that dial() will be called with `address`: AF_UNIX with a path, or AF_INET or AF_INET6
   * on the loopback interface. At most 64 addresses for all plugins. Must be called in start() or,
   * by a transport, in bh_transport.listen(): before untrusted input is read, so that input cannot
   * choose the address. Returns BH_E_DENIED if the profile does not name the address for this
   * compartment, or if the call is too late. [control] */
  bh_status (*will_dial)(void *ctx, const void *address, uint32_t address_size, bh_error *error);

  /* Returns a stream socket that is connected or connecting to a declared address. It is
   * non-blocking and close-on-exec, and the caller closes it. Returns BH_E_DENIED if the address
   * was not declared. [blocking] */
  bh_status (*dial)(void *ctx, const void *address, uint32_t address_size, int32_t *fd,
                    bh_error *error);

  /* Like open(), for an AF_UNIX socket to which every user of this machine can connect (mode 0666;
   * permissions of parent folders are unchanged). The caller must check the user of each peer
   * (SO_PEERCRED) and reject unknown users before reading any data. Returns BH_E_UNSUPPORTED if
   * this process cannot identify other users because its user namespace does not map them.
   * [control] */
  bh_status (*open_for_all)(void *ctx, const void *address, uint32_t address_size,
                            bh_str as_configured, int32_t *fd, bh_error *error);
} bh_host_listen;

#ifdef __cplusplus
}
#endif

#endif
