/* Draft: an HTTP client that one plugin of the compartment offers to the other plugins. Only this
 * plugin loads an HTTP library. It implements bh_http_service; the host offers the same functions
 * to the other plugins as bh_host_http under BH_EXT_HOST_HTTP. Draft ids may change between minor
 * versions.
 */
#ifndef BULKHEAD_ABI_EXT_DRAFT_HTTP_H
#define BULKHEAD_ABI_EXT_DRAFT_HTTP_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HTTP_SERVICE "bh.http-service/1"
#define BH_EXT_HOST_HTTP "bh.host.http/1"

typedef uint64_t bh_http_id; /* 0 means none; includes a generation */

typedef struct bh_http_header {
  bh_str name;
  bh_str value;
} bh_http_header;

/* Called on the reactor thread, but never after on_done or after cancel() has returned. */
typedef struct bh_http_handler {
  uint32_t size;
  uint32_t reserved;

  /* Called before connecting to an address of `host` ("192.0.2.1", "2001:db8::1"; port in host byte
   * order). Returns BH_OK or BH_E_DENIED. If NULL, every address is allowed. The connection is made
   * to the address that was checked. [io] */
  bh_status (*check_address)(void *user, bh_str host, bh_str address, uint32_t port);

  /* Receives the status line and headers of the final response (1xx are dropped). If BH_OK is
   * returned, the request continues; an error ends it. [io] */
  bh_status (*on_head)(void *user, uint32_t status, const bh_http_header *headers, uint32_t n,
                       bh_str effective_url);

  /* Receives a piece of the decoded body. If BH_OK is returned, the request continues; an error
   * ends it. [io] */
  bh_status (*on_body)(void *user, bh_str piece);

  /* Reports that the request has ended. Called exactly once, unless cancelled. error is NULL if the
   * body is complete. [io] */
  void (*on_done)(void *user, const bh_error *error);
} bh_http_handler;

enum { BH_HTTP_DECOMPRESS = 1, BH_HTTP_NO_PROXY = 2 };

typedef struct bh_http_request {
  uint32_t size;
  uint32_t flags; /* BH_HTTP_... */
  bh_str method;
  bh_str url; /* http or https only */
  const bh_http_header *headers;
  uint32_t header_count;
  uint32_t max_redirects;      /* if 0, redirects are returned as responses */
  bh_str body;                 /* copied */
  uint64_t connect_timeout_ms; /* 0 means 10,000 */
  uint64_t total_timeout_ms;   /* 0 means no limit (event streams) */
  uint64_t max_body_bytes;     /* of the decoded body; 0 means no limit */
} bh_http_request;

/* The service's table. Other plugins get the same table, with the host's ctx instead of self. */
typedef struct bh_host_http {
  uint32_t size;
  uint32_t reserved;

  /* Starts a request. `handler` and `user` must stay valid until on_done or cancel. [io] */
  bh_status (*start)(void *ctx, const bh_http_request *request, const bh_http_handler *handler,
                     void *user, bh_http_id *out, bh_error *error);

  /* Cancels a request. No callback follows. Returns BH_STALE if the request has already ended. [io]
   */
  bh_status (*cancel)(void *ctx, bh_http_id id);
} bh_host_http;

typedef bh_host_http bh_http_service;

#ifdef __cplusplus
}
#endif

#endif
