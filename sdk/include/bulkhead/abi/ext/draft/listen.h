/* Draft: sockets of the host. A transport requests listening sockets in its listen() instead of
 * creating them, because the sockets belong to a process that outlives the transport: clients
 * that connect while a crashed endpoint is restarted wait in the queue instead of being refused.
 * In a compartment without network access, open() and dial() are the only way to get sockets.
 * Draft ids may change between minor versions.
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

  /* Returns a listening stream socket bound to `address` (the bytes of a struct sockaddr:
   * AF_INET, AF_INET6, AF_UNIX with a path or AF_VSOCK); non-blocking, close-on-exec,
   * TCP_NODELAY set. The caller closes the descriptor; the host removes the file of a Unix
   * socket (mode 0600). as_configured is used in the error text, which states what to do. Call
   * only from inside bh_transport.listen(). [control] */
  bh_status (*open)(void *ctx, const void *address, uint32_t address_size, bh_str as_configured,
                    int32_t *fd, bh_error *error);

  /* Declares that dial() will be called with `address`: AF_UNIX with a path, or AF_INET and
   * AF_INET6 on the loopback interface. At most 64 for all plugins. Call it from start() or, in
   * a transport, from bh_transport.listen(), that is, before any untrusted input is read, so
   * that input cannot choose the address. Returns BH_E_DENIED if the profile does not name the
   * address for this compartment, or if the call is too late. [control] */
  bh_status (*will_dial)(void *ctx, const void *address, uint32_t address_size, bh_error *error);

  /* Returns a stream socket that is connected or connecting to a declared address; non-blocking,
   * close-on-exec; the caller closes it. Returns BH_E_DENIED if the address was not declared.
   * [blocking] */
  bh_status (*dial)(void *ctx, const void *address, uint32_t address_size, int32_t *fd,
                    bh_error *error);

  /* Like open(), for an AF_UNIX socket to which every user of this machine can connect (mode
   * 0666; permissions of parent folders are unchanged). The caller must check the user of each
   * peer (SO_PEERCRED) and reject unknown users before it reads any data. Returns
   * BH_E_UNSUPPORTED if this process is in a user namespace in which other users are not mapped,
   * so it cannot identify them. [control] */
  bh_status (*open_for_all)(void *ctx, const void *address, uint32_t address_size,
                            bh_str as_configured, int32_t *fd, bh_error *error);
} bh_host_listen;

#ifdef __cplusplus
}
#endif

#endif
