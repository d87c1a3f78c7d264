// Payloads of more than one part.
#pragma once

#include <cstdint>
#include <string>

#include "base/archive.hpp"

namespace bulkhead::link {

struct CallText {
  std::string method, name, arguments;
};
template <class Ar>
void archive(Ar &ar, CallText &v) {
  auto &[method, name, arguments] = v;
  ar(method, name, arguments);
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
  std::uint64_t session = 0;
  std::uint32_t flags = 0;
  std::string transport, peer, principal, process_name, method, server, name, meta, definition_hash;
};
template <class Ar>
void archive(Ar &ar, PolicyText &v) {
  auto &[session, flags, transport, peer, principal, process_name, method, server, name, meta,
         definition_hash] = v;
  ar(session, flags, transport, peer, principal, process_name, method, server, name, meta,
     definition_hash);
}

struct VerdictText {
  std::string rule, reason;
};
template <class Ar>
void archive(Ar &ar, VerdictText &v) {
  auto &[rule, reason] = v;
  ar(rule, reason);
}

struct RecordText {
  std::uint32_t outcome = 0;
  std::uint64_t number = 0, exchange = 0, session = 0, start_unix_ns = 0, duration_ns = 0,
                bytes_in = 0, bytes_out = 0;
  std::string transport, peer, principal, process_name, method, server, name, rule, error;
};
template <class Ar>
void archive(Ar &ar, RecordText &v) {
  auto &[outcome, number, exchange, session, start_unix_ns, duration_ns, bytes_in, bytes_out,
         transport, peer, principal, process_name, method, server, name, rule, error] = v;
  ar(outcome, number, exchange, session, start_unix_ns, duration_ns, bytes_in, bytes_out, transport,
     peer, principal, process_name, method, server, name, rule, error);
}

}  // namespace bulkhead::link
