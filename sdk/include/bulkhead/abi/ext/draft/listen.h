/* Draft: sockets that the host opens. A transport requests its listening sockets from the host,
 * in bh_transport.listen(), instead of creating them. The sockets belong to a process that
 * outlives the transport. While a crashed endpoint is restarted, clients therefore wait instead
 * of being refused. In a compartment without network access, open() and dial() are the only ways
 * to get sockets.
 *
 * Since 1.0. Draft. */
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

  /* Returns a listening stream socket bound to `address` (the bytes of a struct sockaddr:
   * AF_INET, AF_INET6, AF_UNIX with a path, or AF_VSOCK). The socket is non-blocking and
   * close-on-exec, and a TCP socket has TCP_NODELAY set. The caller must close it. The file of a
   * Unix socket has mode 0600; the host removes it. The error text contains as_configured and
   * tells the user what to do. Must not be called outside of bh_transport.listen(). [control] */
  bh_status (*open)(void *ctx, const void *address, uint32_t address_size, bh_str as_configured,
                    int32_t *fd, bh_error *error);

  /* Announces an address for dial(): AF_UNIX with a path, or a loopback address of AF_INET or
   * AF_INET6. Must be called in start() or, by a transport, in bh_transport.listen(). This is
   * before any untrusted input is read, so input cannot choose the address. Returns BH_E_LIMIT
   * after 64 addresses. Returns BH_E_DENIED if the profile does not list the address for this
   * compartment, or if the call is too late. [control] */
  bh_status (*will_dial)(void *ctx, const void *address, uint32_t address_size, bh_error *error);

  /* Returns a stream socket that is connected or connecting to an announced address. The socket
   * is non-blocking and close-on-exec, and the caller must close it. Returns BH_E_DENIED if the
   * address was not announced. [blocking] */
  bh_status (*dial)(void *ctx, const void *address, uint32_t address_size, int32_t *fd,
                    bh_error *error);

  /* Like open(), but for an AF_UNIX socket to which all users of this machine can connect (mode
   * 0666; the permissions of parent folders are unchanged). The caller must check each peer's
   * user (SO_PEERCRED), and reject unknown users before it reads any data. Returns
   * BH_E_UNSUPPORTED if the process's user namespace does not map other users, so that they
   * cannot be identified. [control] */
  bh_status (*open_for_all)(void *ctx, const void *address, uint32_t address_size,
                            bh_str as_configured, int32_t *fd, bh_error *error);
} bh_host_listen;

#ifdef __cplusplus
}
#endif

#endif
