// The types of frame payloads that consist of several values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/archive.hpp"
#include "base/policy_texts.hpp"

namespace bulkhead::link {

// `plugin` is the instance ID of the plugin that opens the lane.
struct LaneText {
  std::string plugin, server;
};
template <class Ar>
void archive(Ar &ar, LaneText &v) {
  auto &[plugin, server] = v;
  ar(plugin, server);
}

// Header names and values. The strings point into the frame or belong to the sender.
struct HeadersText {
  std::vector<std::pair<std::string_view, std::string_view>> headers;
};
template <class Ar>
void archive(Ar &ar, HeadersText &v) {
  auto &[headers] = v;
  ar(headers);
}

// A failure of a lane or exchange; see LaneFailure. The strings point into the frame or belong to
// the sender.
struct FailureText {
  std::string_view error, scope;
  std::vector<std::string_view> challenges;
  std::uint32_t http_status = 0;
};
template <class Ar>
void archive(Ar &ar, FailureText &v) {
  auto &[error, scope, challenges, http_status] = v;
  ar(error, scope, challenges, http_status);
}

// A bh_call_info and the plugin's ID. The strings point into the frame or belong to the sender.
struct CallText {
  std::string_view plugin, method, name, arguments, principal, traceparent, input_responses,
      request_state;
  std::uint64_t session = 0;
};
template <class Ar>
void archive(Ar &ar, CallText &v) {
  auto &[plugin, method, name, arguments, principal, traceparent, input_responses, request_state,
         session] = v;
  ar(plugin, method, name, arguments, principal, traceparent, input_responses, request_state,
     session);
}

struct Progress {
  double value = 0, total = 0;
  std::string message;
};
template <class Ar>
void archive(Ar &ar, Progress &v) {
  auto &[value, total, message] = v;
  ar(value, total, message);
}

struct PolicyText {
  std::uint64_t session = 0, session_calls = 0, session_age_ns = 0;
  std::uint32_t flags = 0, pin = 0, event = 0;
  std::array<std::string, policy_texts.size()> texts;  // in the order of policy_texts
};
template <class Ar>
void archive(Ar &ar, PolicyText &v) {
  auto &[session, session_calls, session_age_ns, flags, pin, event, texts] = v;
  ar(session, session_calls, session_age_ns, flags, pin, event, texts);
}

struct VerdictText {
  std::string rule, reason;
  std::uint32_t flags = 0;
};
template <class Ar>
void archive(Ar &ar, VerdictText &v) {
  auto &[rule, reason, flags] = v;
  ar(rule, reason, flags);
}

// The state of a policy. `link` is the number of the link that is part of the request numbers in
// the state (PolicyServerStub). The strings point into the frame or belong to the sender.
struct StateText {
  std::uint32_t version = 0;
  std::uint64_t link = 0;
  std::string_view schema, bytes;
};
template <class Ar>
void archive(Ar &ar, StateText &v) {
  auto &[version, link, schema, bytes] = v;
  ar(version, link, schema, bytes);
}

// The strings point into a bh_record, or into the frame that contains the record.
struct RecordText {
  std::uint32_t outcome = 0, action = 0, flags = 0, kind = 0, client_revision = 0,
                server_revision = 0;
  std::uint64_t number = 0, exchange = 0, session = 0, start_unix_ns = 0, duration_ns = 0,
                bytes_in = 0, bytes_out = 0, params_bytes = 0, result_bytes = 0, intent = 0;
  std::string_view transport, peer, principal, process_name, method, server, name, rule, error,
      request_id, request, response, reason, trace_id, detail, claimed_name;
};
template <class Ar>
void archive(Ar &ar, RecordText &v) {
  auto &[outcome, action, flags, kind, client_revision, server_revision, number, exchange, session,
         start_unix_ns, duration_ns, bytes_in, bytes_out, params_bytes, result_bytes, intent,
         transport, peer, principal, process_name, method, server, name, rule, error, request_id,
         request, response, reason, trace_id, detail, claimed_name] = v;
  ar(outcome, action, flags, kind, client_revision, server_revision, number, exchange, session,
     start_unix_ns, duration_ns, bytes_in, bytes_out, params_bytes, result_bytes, intent, transport,
     peer, principal, process_name, method, server, name, rule, error, request_id, request,
     response, reason, trace_id, detail, claimed_name);
}

struct CountersText {
  std::vector<std::pair<std::string, std::uint64_t>> values;
};
template <class Ar>
void archive(Ar &ar, CountersText &v) {
  auto &[values] = v;
  ar(values);
}

}  // namespace bulkhead::link
