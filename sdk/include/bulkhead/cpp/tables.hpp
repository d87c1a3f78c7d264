// Generates extension tables from a plugin's class. Each function in a table calls the member
// function that the table's comment lists, and catches its exceptions unless stated otherwise. Only
// the tables that a plugin uses are instantiated.
#pragma once

#include <cstdint>
#include <span>

#include "../abi/ext/connector.h"
#include "../abi/ext/draft/http.h"
#include "../abi/ext/draft/state.h"
#include "../abi/ext/policy.h"
#include "../abi/ext/telemetry.h"
#include "../abi/ext/tools.h"
#include "../abi/ext/transport.h"
#include "plugin.hpp"

namespace bh {

// P must have listen(error), stop_accepting(), send(const bh_outgoing&), session_ended(session,
// reason) and endpoint() -> bh_str.
template <class P>
const bh_transport *transport_table() noexcept {
  static const bh_transport table{
      sizeof(bh_transport),
      0,
      [](void *s, bh_error *e) { return guarded(e, [&] { return self<P>(s).listen(e); }); },
      [](void *s) { contained([&] { self<P>(s).stop_accepting(); }); },
      [](void *s, const bh_outgoing *m) {
        return guarded(nullptr, [&] { return self<P>(s).send(*m); });
      },
      [](void *s, bh_session session, bh_str reason) {
        contained([&] { self<P>(s).session_ended(session, reason); });
      },
      [](void *s) { return guarded_or(bh_str{}, [&] { return self<P>(s).endpoint(); }); }};
  return &table;
}

// P must have lane_open(lane, const bh_lane_info&, void **out, error), lane_send(void *lane, const
// bh_lane_message&, error), lane_ready(void *lane, revision), lane_abandon(void *lane, exchange)
// and lane_close(void *lane).
template <class P>
const bh_connector *connector_table() noexcept {
  static const bh_connector table{
      sizeof(bh_connector),
      0,
      [](void *s, bh_lane lane, const bh_lane_info *info, void **out, bh_error *e) {
        return guarded(e, [&] { return self<P>(s).lane_open(lane, *info, out, e); });
      },
      [](void *s, void *lane, const bh_lane_message *m, bh_error *e) {
        return guarded(e, [&] { return self<P>(s).lane_send(lane, *m, e); });
      },
      [](void *s, void *lane, bh_str revision) {
        contained([&] { self<P>(s).lane_ready(lane, revision); });
      },
      [](void *s, void *lane, std::uint64_t exchange) {
        contained([&] { self<P>(s).lane_abandon(lane, exchange); });
      },
      [](void *s, void *lane) { contained([&] { self<P>(s).lane_close(lane); }); }};
  return &table;
}

// For tools_table(), P must have list(const bh_list_info&, bh_buf *out, error), call_begin(call,
// const bh_call_info&, error) and call_cancel(call, const bh_cancel&). features() -> bits is
// optional; if it throws, the bits are 0.
template <class P>
constexpr auto tools_features() noexcept -> std::uint32_t (*)(void *) {
  if constexpr (requires(P &p) { p.features(); }) {
    return
        [](void *s) { return guarded_or(std::uint32_t{0}, [&] { return self<P>(s).features(); }); };
  } else {
    return nullptr;
  }
}
template <class P>
const bh_tools *tools_table() noexcept {
  static const bh_tools table{sizeof(bh_tools),
                              0,
                              [](void *s, const bh_list_info *info, bh_buf *out, bh_error *e) {
                                return guarded(e, [&] { return self<P>(s).list(*info, out, e); });
                              },
                              [](void *s, bh_call call, const bh_call_info *info, bh_error *e) {
                                return guarded(
                                    e, [&] { return self<P>(s).call_begin(call, *info, e); });
                              },
                              [](void *s, bh_call call, const bh_cancel *cancel) {
                                contained([&] { self<P>(s).call_cancel(call, *cancel); });
                              },
                              tools_features<P>()};
  return &table;
}

// For policy_table(), P must have needs() -> bits and decide(const bh_policy_request&, bh_verdict
// *out, error). Optional: observe(request, result, out, error), filter(request, error) and
// reconfigure(json, error). If needs() throws, all bits are set, so that no message bypasses the
// policy. If needs() has the bit of a missing function, results are rejected or items not listed.
template <class P>
constexpr auto policy_reconfigure() noexcept -> bh_status (*)(void *, bh_str, bh_error *) {
  if constexpr (requires(P &p, bh_str json, bh_error *e) { p.reconfigure(json, e); }) {
    return [](void *s, bh_str json, bh_error *e) {
      return guarded(e, [&] { return self<P>(s).reconfigure(json, e); });
    };
  } else {
    return nullptr;
  }
}
template <class P>
const bh_policy *policy_table() noexcept {
  static const bh_policy table{
      sizeof(bh_policy),
      0,
      [](void *s) { return guarded_or(~std::uint32_t{0}, [&] { return self<P>(s).needs(); }); },
      [](void *s, const bh_policy_request *r, bh_verdict *out, bh_error *e) {
        return guarded(e, [&] { return self<P>(s).decide(*r, out, e); });
      },
      [](void *s, const bh_policy_request *r, bh_str result, bh_verdict *out,
         bh_error *e) -> bh_status {
        if constexpr (requires { self<P>(s).observe(*r, result, out, e); }) {
          return guarded(e, [&] { return self<P>(s).observe(*r, result, out, e); });
        } else {
          return fail(e, BH_E_UNSUPPORTED, "this policy evaluates no results");
        }
      },
      [](void *s, const bh_policy_request *r, bh_error *e) -> bh_status {
        if constexpr (requires { self<P>(s).filter(*r, e); }) {
          return guarded(e, [&] { return self<P>(s).filter(*r, e); });
        } else {
          return fail(e, BH_E_UNSUPPORTED, "this policy filters no lists");
        }
      },
      policy_reconfigure<P>()};
  return &table;
}

// P must have export_state(bh_state_blob *out, error) and import_state(const bh_state_blob&,
// error), which return a status. Use the table only with a plugin that also has policy_table().
template <class P>
const bh_state *state_table() noexcept {
  static const bh_state table{sizeof(bh_state), 0,
                              [](void *s, bh_state_blob *out, bh_error *e) {
                                return guarded(e, [&] { return self<P>(s).export_state(out, e); });
                              },
                              [](void *s, const bh_state_blob *blob, bh_error *e) {
                                return guarded(e,
                                               [&] { return self<P>(s).import_state(*blob, e); });
                              }};
  return &table;
}

// P must have batch(records, n) -> number of accepted records. needs() -> bits is optional. If
// batch() throws, no record is accepted. If needs() throws, all bits are set.
template <class P>
const bh_telemetry *telemetry_table() noexcept {
  static const bh_telemetry table{
      sizeof(bh_telemetry), 0,
      [](void *s, const bh_record *const *records, std::uint32_t n) {
        return guarded_or(std::uint32_t{0}, [&] { return self<P>(s).batch(records, n); });
      },
      [](void *s) -> std::uint32_t {
        if constexpr (requires { self<P>(s).needs(); }) {
          return guarded_or(~std::uint32_t{0}, [&] { return self<P>(s).needs(); });
        } else {
          return 0;
        }
      }};
  return &table;
}

// Returns the callbacks of an HTTP request whose `user` points to a P. P must have
// check_address(host, address), on_head(status, headers) and on_body(piece), which return a status,
// and on_done(const bh_error *).
//
// If one of the first three throws, the request fails, and on_done() is called with an error.
template <class P>
const bh_http_handler *http_handler() noexcept {
  static const bh_http_handler table{
      sizeof(bh_http_handler),
      0,
      [](void *user, bh_str host, bh_str address, std::uint32_t) {
        return guarded(nullptr,
                       [&] { return self<P>(user).check_address(view(host), view(address)); });
      },
      [](void *user, std::uint32_t status, const bh_http_header *headers, std::uint32_t n, bh_str) {
        return guarded(nullptr,
                       [&] { return self<P>(user).on_head(status, std::span(headers, n)); });
      },
      [](void *user, bh_str piece) {
        return guarded(nullptr, [&] { return self<P>(user).on_body(view(piece)); });
      },
      [](void *user, const bh_error *error) { contained([&] { self<P>(user).on_done(error); }); }};
  return &table;
}

// P must have http_start(const bh_http_request&, const bh_http_handler*, user, bh_http_id *out,
// error) and http_cancel(id), which must not throw.
template <class P>
const bh_http_service *http_service_table() noexcept {
  static const bh_http_service table{
      sizeof(bh_http_service), 0,
      [](void *s, const bh_http_request *r, const bh_http_handler *h, void *user, bh_http_id *out,
         bh_error *e) {
        return guarded(e, [&] { return self<P>(s).http_start(*r, h, user, out, e); });
      },
      [](void *s, bh_http_id id) { return self<P>(s).http_cancel(id); }};
  return &table;
}

}  // namespace bh
