// Defines Row, a copy of a record for the writer thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace telemetry_sqlite {

// Maximum size in bytes of each short string in a record, such as a name, rule, error or request
// ID. The limits for the other strings are BH_RECORD_TEXT_BYTES and BH_EVENT_BYTES.
inline constexpr std::size_t max_short_text = 1024;

struct Row {
  std::uint32_t outcome = 0, action = 0, flags = 0, kind = 0;  // kind is BH_RECORD_*
  std::uint32_t client_revision = 0, server_revision = 0;      // as in bh_record
  std::uint64_t number = 0, session = 0, start_unix_ns = 0, duration_ns = 0, params_bytes = 0,
                result_bytes = 0, intent = 0;
  bool masked = false;  // mask() has been applied to all strings
  std::string transport, peer, principal, process_name, method, server, name, rule, error,
      request_id, request, response, reason, trace_id, detail, claimed_name;

  template <class F>
  void each_text(F f) {
    for (std::string *text :
         {&transport, &peer, &principal, &process_name, &method, &server, &name, &rule, &error,
          &request_id, &request, &response, &reason, &trace_id, &detail, &claimed_name}) {
      f(*text);
    }
  }
  template <class F>
  void each_number(F f) {
    for (std::uint64_t *number_of :
         {&number, &session, &start_unix_ns, &duration_ns, &params_bytes, &result_bytes, &intent}) {
      f(*number_of);
    }
  }
  std::size_t bytes() const {
    std::size_t sum = sizeof(Row);
    const_cast<Row *>(this)->each_text([&](const std::string &text) { sum += text.size(); });
    return sum;
  }
};

}  // namespace telemetry_sqlite
