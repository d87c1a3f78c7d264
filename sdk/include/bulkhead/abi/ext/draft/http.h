/* Draft: an HTTP client that one plugin provides to the other plugins of its compartment, so
 * that only this plugin loads an HTTP library. It implements bh_http_service. The other plugins
 * call the same functions through bh_host_http (BH_EXT_HOST_HTTP).
 *
 * Since 1.0. Draft. */
#ifndef BULKHEAD_ABI_EXT_DRAFT_HTTP_H
#define BULKHEAD_ABI_EXT_DRAFT_HTTP_H

#include "../../host.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BH_EXT_HTTP_SERVICE "bh.http-service/1"
#define BH_EXT_HOST_HTTP "bh.host.http/1"

typedef uint64_t bh_http_id; /* 0: none; contains a generation */

typedef struct bh_http_header {
  bh_str name;
  bh_str value;
} bh_http_header;

/* The callbacks of a request. They are called on the reactor thread, but not after on_done and
 * not after cancel() has returned. */
typedef struct bh_http_handler {
  uint32_t size;
  uint32_t reserved;

  /* Called before a connection to an address of `host` ("192.0.2.1", "2001:db8::1"; port in host
   * byte order) is opened or reused. Returns BH_OK to use exactly this address, or BH_E_DENIED to
   * reject it. NULL accepts all addresses. [io] */
  bh_status (*check_address)(void *user, bh_str host, bh_str address, uint32_t port);

  /* Called with the status and headers of the final response (1xx responses, and redirects that
   * are followed, are dropped). An error ends the request: on_done follows with
   * BH_E_CANCELLED. [io] */
  bh_status (*on_head)(void *user, uint32_t status, const bh_http_header *headers, uint32_t n,
                       bh_str effective_url);

  /* Called with a piece of the decoded body. An error ends the request, as in on_head. [io] */
  bh_status (*on_body)(void *user, bh_str piece);

  /* Called exactly once when the request is complete or has failed, unless cancel() was called.
   * `error` is NULL if the whole body was received. [io] */
  void (*on_done)(void *user, const bh_error *error);
} bh_http_handler;

enum { BH_HTTP_DECOMPRESS = 1, BH_HTTP_NO_PROXY = 2 };

typedef struct bh_http_request {
  uint32_t size;
  uint32_t flags; /* BH_HTTP_... */
  bh_str method;
  bh_str url; /* only http and https */
  const bh_http_header *headers;
  uint32_t header_count;
  uint32_t max_redirects;      /* at most 20; 0: redirects are returned as responses */
  bh_str body;                 /* copied */
  uint64_t connect_timeout_ms; /* 0: 10,000 */
  uint64_t total_timeout_ms;   /* 0: no limit (event streams) */
  uint64_t max_body_bytes;     /* limit for the decoded body; 0: no limit */
} bh_http_request;

/* The service's functions for other plugins. `ctx` is the ctx of the host instead of the
 * service's `self`. */
typedef struct bh_host_http {
  uint32_t size;
  uint32_t reserved;

  /* Starts a request. `handler` and `user` must remain valid until on_done or cancel. [io] */
  bh_status (*start)(void *ctx, const bh_http_request *request, const bh_http_handler *handler,
                     void *user, bh_http_id *out, bh_error *error);

  /* Cancels a request. No callback is called afterwards. Returns BH_STALE if the request is
   * already complete. [io] */
  bh_status (*cancel)(void *ctx, bh_http_id id);
} bh_host_http;

typedef bh_host_http bh_http_service;

#ifdef __cplusplus
}
#endif

#endif
