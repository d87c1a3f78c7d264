// Defines the arguments of the commands that read the session database.
#pragma once

#include <cstdint>
#include <string>

namespace CLI {
class App;
}

namespace bulkhead::program {

inline constexpr const char *file_type = "FILE";  // the placeholder for file arguments in --help

struct RecordArguments {
  std::string sql, file;    // file: empty for the files in the profile's state directory
  bool schema = false;      // inspect
  std::string since;        // timeline, calls, policy replay
  std::string layers;       // timeline
  std::string trace;        // timeline, calls
  std::string client;       // calls: a claimed name or a process name
  std::string session;      // calls: the number of a session
  std::uint64_t limit = 0;  // timeline, calls, logs; 0: the default
  std::string limit_note;   // timeline, calls: why the limit was reduced
  bool follow = false;      // calls, logs
  std::string tool;         // calls
  bool denied = false, errors = false;  // calls
  bool args = false;                    // calls: show sessions and arguments
  bool utc = false;                     // timeline, calls
  std::string key;                      // audit verify: the key in hex, or a file that contains it
  std::string instance;  // audit verify: the instance of a file outside the state directory
  std::uint64_t max_unsigned = 5'000;  // audit verify: limit for rows after the last signature
};

struct Arguments;
void add_records(CLI::App &app, Arguments &to);

}  // namespace bulkhead::program
