#include "relay/relay.hpp"

#include <atomic>
#include <csignal>
#include <exception>
#include <string>
#include <vector>

#include "connector-vsock/definition.hpp"
#include "pipe/pipe_host.hpp"
#include "relay/doctor.hpp"
#include "relay/options.hpp"
#include "relay/plugins.hpp"
#include "relay/write_out.hpp"

namespace bulkhead::relay {
namespace {

std::atomic<pipe::PipeHost *> running{nullptr};

// Makes SIGINT and SIGTERM shut the relay down cleanly, so that it restores the flags of a terminal
// that it shares with other programs.
void stop_on_signals() {
  struct sigaction action{};
  action.sa_handler = [](int) {
    if (pipe::PipeHost *host = running.load()) host->request_stop();
  };
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

int complain(std::string_view program, std::string_view text, int code) {
  write_error(std::string(program) + ": " + std::string(text) + "\n");
  return code;
}

int pass_messages(std::string_view program, const Options &options, std::string endpoint) {
  pipe::Options with;
  with.transport = stdio_entry;
  with.connector = vsock_entry;
  with.endpoint = std::move(endpoint);
  with.definition = [&options](std::string_view process_name) {
    return definition_of(options, process_name);
  };
  with.log = [program](std::int32_t, std::string_view text) { complain(program, text, 0); };
  auto host = pipe::PipeHost::create(std::move(with));
  if (!host) return complain(program, host.error().text, 1);
  running.store(host->get());
  stop_on_signals();
  const auto done = (*host)->run();
  running.store(nullptr);
  return done ? 0 : complain(program, done.error().text, 1);
}

// Returns the command line that runs the relay, that is, the current command line without `doctor`.
std::vector<std::string> relay_command(std::string_view program, int argc,
                                       const char *const *argv) {
  std::vector<std::string> out{std::string(program.substr(0, program.find(' ')))};
  if (program.find(' ') != program.npos) out.emplace_back(program.substr(program.find(' ') + 1));
  out.insert(out.end(), argv + 2, argv + argc);
  return out;
}

int run_checked(std::string_view program, int argc, const char *const *argv) {
  const auto parsed = parse_options(program, argc, argv);
  if (const int *code = std::get_if<int>(&parsed)) return *code;
  const auto &options = std::get<Options>(parsed);
  connector_vsock::Definition definition;
  bh_error error = bh::make_error();
  if (parse_definition(definition_of(options, {}), &definition, &error) != BH_OK) {
    return complain(program, "invalid option: " + std::string(bh::text(error)), 2);
  }
  if (options.doctor) return run_doctor(definition, relay_command(program, argc, argv));
  return pass_messages(program, options, definition.address());
}

}  // namespace

int run(std::string_view program, int argc, const char *const *argv) {
  try {
    return run_checked(program, argc, argv);
  } catch (const std::exception &error) {  // usually out of memory
    return complain(program, error.what(), 1);
  }
}

}  // namespace bulkhead::relay
