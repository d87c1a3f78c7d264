/* Draft: sockets from the host. A transport asks for them in its listen() instead of
 * making them itself, because they belong to the process that survives it: clients that connect
 * while a crashed gateway is started again wait in the queue, and are not refused. It is also the
 * only way in a compartment without a network of its own, and so is dial(). Draft ids may change
 * between minors.
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

  /* A stream socket that is bound to `address` (the bytes of a struct sockaddr: AF_INET, AF_INET6,
   * AF_UNIX with a path or AF_VSOCK) and listens; non-blocking, close-on-exec, TCP_NODELAY set. The
   * descriptor is the caller's to close, the file of a Unix socket (0600) the host's to remove.
   * as_configured is for the error text, which says what to do. Only from inside
   * bh_transport.listen(). [control] */
  bh_status (*open)(void *ctx, const void *address, uint32_t address_size, bh_str as_configured,
                    int32_t *fd, bh_error *error);

  /* Announces that dial() will be asked for `address`: AF_UNIX with a path, or AF_INET and AF_INET6
   * on the loopback interface. At most 64 for all plugins. From start() or, of a transport,
   * bh_transport.listen(), so before a byte from outside is read: what is read later shall not
   * choose where to. BH_E_DENIED: the host takes only sockets that the profile names for this
   * compartment, or it is later and the host takes none then. [control] */
  bh_status (*will_dial)(void *ctx, const void *address, uint32_t address_size, bh_error *error);

  /* A stream socket that is connected or being connected to an announced address; non-blocking,
   * close-on-exec, the caller's to close. BH_E_DENIED: not announced. [blocking] */
  bh_status (*dial)(void *ctx, const void *address, uint32_t address_size, int32_t *fd,
                    bh_error *error);

  /* open() for AF_UNIX whose file every user of this machine may connect to (0666; the folders on
   * the way keep their own permissions). For who asks the kernel about each peer (SO_PEERCRED) and
   * turns away those it does not know, before it reads a byte. BH_E_UNSUPPORTED: this process lives
   * in a user namespace in which other users have no number, so it could not tell them apart.
   * [control] */
  bh_status (*open_for_all)(void *ctx, const void *address, uint32_t address_size,
                            bh_str as_configured, int32_t *fd, bh_error *error);
} bh_host_listen;

#ifdef __cplusplus
}
#endif

#endif
