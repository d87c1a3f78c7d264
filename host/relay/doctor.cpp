#include "relay/doctor.hpp"

#include <fcntl.h>
#include <linux/vm_sockets.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"
#include "bulkhead/cpp/text.hpp"
#include "connector-vsock/dial.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "pipe/line.hpp"
#include "relay/relay_child.hpp"
#include "relay/write_out.hpp"

namespace bulkhead::relay {
namespace {

using connector_vsock::AddressKind;

constexpr int connect_wait_ms = 5'000;
constexpr std::size_t oversize = 1'100'000;
// Tool descriptions of at most this many bytes cause a warning.
constexpr std::size_t good_description = 10;

class Doctor {
 public:
  Doctor(const connector_vsock::Definition &definition, RelayChild &relay)
      : definition_(definition), relay_(relay) {}

  int run() {
    const bool there = device() && reachable() && introduced();
    if (!there) {
      print("", "The other checks need the connection and were skipped.");
      return 1;
    }
    notifications();
    tools();
    invalid_json();
    too_large();
    unknown_tool();
    ending();
    return failed_ ? 1 : 0;
  }

 private:
  void print(std::string_view mark, std::string_view text) {
    // The endpoint's text may contain control characters.
    write_output(std::string(mark) + bh::printable(text) + "\n");
  }
  bool good(const std::string &text) {
    print("ok    ", text);
    return true;
  }
  bool bad(const std::string &text, std::string_view what_to_do) {
    failed_ = true;
    print("FAIL  ", text);
    print("      ", what_to_do);
    return false;
  }
  void warn(const std::string &text, std::string_view what_to_do) {
    print("warn  ", text);
    print("      ", what_to_do);
  }

  bool device() {
    if (definition_.kind != AddressKind::vsock) return true;
    const OwnedFd fd(::open("/dev/vsock", O_RDONLY | O_CLOEXEC));
    if (!fd) {
      return bad("cannot open /dev/vsock",
                 "The machine needs a vsock device (QEMU: -device vhost-vsock-pci,guest-cid=N; "
                 "Firecracker and Cloud Hypervisor: a vsock section) and the kernel module "
                 "vmw_vsock_virtio_transport, and you need read permission for /dev/vsock.");
    }
    unsigned cid = 0;
    if (::ioctl(fd.get(), IOCTL_VM_SOCKETS_GET_LOCAL_CID, &cid) != 0) cid = 0;
    return good("vsock device, this machine is CID " + std::to_string(cid));
  }

  bool reachable() {
    const OwnedFd fd(connector_vsock::dial(definition_));
    int error = fd ? 0 : errno;
    if (fd) {
      pollfd ready{fd.get(), POLLOUT, 0};
      error = ::poll(&ready, 1, connect_wait_ms) <= 0 ? ETIMEDOUT
                                                      : connector_vsock::connect_error(fd.get());
    }
    const std::string to = definition_.address();
    if (error != 0) {
      return bad("no connection to " + to + ": " + explain(definition_, error),
                 connect_advice(error));
    }
    if (definition_.kind == AddressKind::hybrid) {
      if (const std::string fault = dialogue(fd.get()); !fault.empty()) {
        return bad("no connection to " + to + ": " + fault,
                   "The monitor's socket exists, but no process in the guest responds. Check that "
                   "a process in the guest is listening on this vsock port (--port).");
      }
    }
    return good("connection to " + to);
  }

  std::string connect_advice(int error) const {
    if (definition_.kind != AddressKind::vsock && (error == EACCES || error == EPERM)) {
      return "You are user " + std::to_string(::geteuid()) +
             ". Only the gateway's own user may connect to its socket, unless allow_uids of its "
             "transport names others (docs/guest.md), and you need search permission (x) for each "
             "folder in the path. A monitor's socket belongs to the user who runs the monitor.";
    }
    return "Check that the gateway runs on the host with transport-vsock on this port, and that "
           "the port matches (--port; capsem.vsock_port_offset= on the kernel command line).";
  }

  // Performs the handshake of a hybrid socket. Returns the reason for a failure, or an empty string
  // on success.
  std::string dialogue(int fd) const {
    const std::string request = connector_vsock::hybrid_request(definition_);
    const std::string said = "CONNECT " + std::to_string(definition_.port);
    if (::send(fd, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      return "it did not accept " + said;
    }
    std::string answer;
    std::size_t size = 0;
    while (connector_vsock::hybrid_answer(answer, &size) == connector_vsock::Hybrid::more) {
      pollfd ready{fd, POLLIN, 0};
      if (::poll(&ready, 1, connect_wait_ms) <= 0) return "no response to " + said;
      char byte = 0;  // bytes after the response belong to the connection
      if (::recv(fd, &byte, 1, 0) != 1)
        return said + " was rejected: no process is listening on that port";
      answer += byte;
    }
    const bool accepted =
        connector_vsock::hybrid_answer(answer, &size) == connector_vsock::Hybrid::accepted;
    if (accepted) return {};
    return "the response to " + said + " was \"" + answer.substr(0, answer.find_first_of("\r\n")) +
           "\" instead of OK";
  }

  // Returns the response with this ID, or a response without an ID if `id` is empty. On failure,
  // prints a line and returns an empty string.
  std::string request_any(const std::string &message, std::string_view id, const char *what) {
    if (relay_.send(message)) {
      if (auto text = relay_.answer(id)) return *text;
    }
    if (const std::string stray = relay_.next_stray(); !stray.empty()) {
      bad(std::string(what) + ": the response has a different id: " + stray.substr(0, 200),
          "The endpoint must respond to each request exactly once, with the id of the request.");
      return {};
    }
    bad(std::string(what) + ": no response",
        "See the relay's messages above; if there are none, the endpoint is unresponsive; see its "
        "log.");
    return {};
  }
  // Returns the endpoint's response. Error -32001 comes from the relay itself and counts as a
  // failure.
  std::string ask(const std::string &message, std::string_view id, const char *what) {
    std::string text = request_any(message, id, what);
    const auto error = mcp::member(text, "error");
    if (mcp::member(error, "code") != "-32001") return text;
    bad(std::string(what) + " received no response from the endpoint: " +
            std::string(mcp::member(error, "message")),
        "This error comes from the relay: the connection was closed or did not exist. The "
        "gateway's log contains the reason for a rejection (allow_cids, allow_uids, "
        "max_connections_per_peer); `bulkhead status --json` counts rejections under vsock.*.");
    return {};
  }
  static std::string request(int id, std::string_view method, std::string_view params) {
    std::string message = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")";
    return message.append(method).append("\",\"params\":").append(params).append("}");
  }
  std::string ask(int id, std::string_view method, std::string_view params, const char *what) {
    return ask(request(id, method, params), std::to_string(id), what);
  }

  bool introduced() {
    const std::string text = ask(
        1, "initialize",
        R"({"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bulkhead-relay doctor","version":")" BULKHEAD_VERSION
        R"("}})",
        "initialize");
    if (text.empty()) return false;
    const auto result = mcp::member(text, "result");
    const auto name = mcp::member(mcp::member(result, "serverInfo"), "name");
    if (name.empty()) {
      return bad("initialize was rejected: " + text.substr(0, 200),
                 "The endpoint is not an MCP endpoint, or its policy rejects this process.");
    }
    return good("initialize: " + std::string(name) + ", revision " +
                std::string(mcp::member(result, "protocolVersion")));
  }

  void notifications() {
    relay_.send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    relay_.send(R"({"jsonrpc":"2.0","method":"$/progress","params":{}})");
    const std::string text = ask(2, "ping", "{}", "ping");
    if (text.empty()) return;
    const std::string stray = relay_.next_stray();
    if (stray.empty()) {
      good("the endpoint responds to ping, but not to notifications");
    } else {
      bad("the endpoint responded to a notification: " + stray.substr(0, 200),
          "The endpoint must respond only to requests.");
    }
  }

  void tools() {
    const std::string text = ask(3, "tools/list", "{}", "tools/list");
    if (text.empty()) return;
    const auto list = mcp::member(mcp::member(text, "result"), "tools");
    if (list.empty()) {
      bad("tools/list was rejected: " + text.substr(0, 200),
          "See the gateway's log and its policy.");
      return;
    }
    struct Seen {
      int count = 0, without_schema = 0, without_properties = 0, badly_described = 0;
      int without_annotations = 0;
    } seen;
    mcp::for_each_item(list, [&s = seen](std::string_view tool) {
      ++s.count;
      const auto schema = mcp::member(tool, "inputSchema");
      if (mcp::member(schema, "type") != "\"object\"") {
        ++s.without_schema;
      } else if (!mcp::member(schema, "properties").starts_with('{')) {
        ++s.without_properties;
      }
      if (!mcp::member(tool, "annotations").starts_with('{')) ++s.without_annotations;
      if (mcp::member(tool, "description").size() <= good_description + 2) ++s.badly_described;
    });
    if (seen.count == 0) {
      warn("tools/list is empty",
           "No server of the gateway is ready; run `bulkhead status` on the host.");
    } else {
      good("tools/list: " + std::to_string(seen.count) + " tools on its first page");
    }
    if (seen.without_schema > 0) {
      warn(std::to_string(seen.without_schema) + " tools have an inputSchema that is not an object",
           "Clients may reject them; correct the server.");
    }
    if (seen.without_properties > 0) {
      print("      ", std::to_string(seen.without_properties) + " tools declare no arguments.");
    }
    if (seen.without_annotations > 0) {
      print("      ", std::to_string(seen.without_annotations) +
                          " tools have no annotations: clients treat them as destructive.");
    }
    if (seen.badly_described > 0) {
      warn(std::to_string(seen.badly_described) + " tools have no useful description",
           "Models cannot decide when to use them.");
    }
  }

  void invalid_json() {
    const std::string text = ask("{oops", {}, "invalid JSON");
    if (text.empty()) return;
    const bool right = mcp::member(mcp::member(text, "error"), "code") == "-32700";
    const bool goes_on = still_answers(4);
    const std::string stray = relay_.next_stray();
    if (right && goes_on && stray.empty()) {
      good("invalid JSON is rejected with error -32700, and the next request succeeds");
    } else if (!right || !stray.empty()) {
      bad("the response to invalid JSON was " + (right ? stray : text).substr(0, 200) +
              (right ? ", a second response" : ""),
          "The endpoint must send exactly one error response with code -32700 and no id, and "
          "continue.");
    }
  }

  void too_large() {
    const std::string text =
        request_any(request(5, "ping", "{\"x\":\"" + std::string(oversize, 'x') + "\"}"), "5",
                    "an oversized message");
    if (text.empty()) return;
    const auto code = mcp::member(mcp::member(text, "error"), "code");
    if (code == "-32001") {
      if (still_answers(6)) {
        good("an oversized message is rejected with error -32001, and the next request succeeds");
      }
    } else {
      bad("the response to an oversized message was " + text.substr(0, 200),
          "This is a bug in the relay; please report it.");
    }
  }

  void unknown_tool() {
    const std::string text =
        ask(7, "tools/call", R"({"name":"bulkhead_doctor__no_such_tool","arguments":{}})",
            "a call to an unknown tool");
    if (text.empty()) return;
    const bool refused = !mcp::member(text, "error").empty() ||
                         mcp::member(mcp::member(text, "result"), "isError") == "true";
    if (refused) {
      good("an unknown tool is rejected");
    } else {
      bad("a call to an unknown tool was not rejected: " + text.substr(0, 200),
          "See the gateway's log.");
    }
  }

  bool still_answers(int id) { return !ask(id, "ping", "{}", "ping").empty(); }

  void ending() {
    const int code = relay_.end();
    if (code == 0) {
      good("the relay exits at the end of its input");
    } else {
      bad("the relay did not exit cleanly (" + std::to_string(code) + ")",
          "The endpoint may keep the connection open; see its log.");
    }
  }

  const connector_vsock::Definition &definition_;
  RelayChild &relay_;
  bool failed_ = false;
};

}  // namespace

int run_doctor(const connector_vsock::Definition &definition,
               const std::vector<std::string> &relay_command) {
  RelayChild relay(relay_command);
  if (!relay.started()) {
    write_error("doctor: cannot start a relay: " + bh::error_name(errno) + "\n");
    return 1;
  }
  return Doctor(definition, relay).run();
}

}  // namespace bulkhead::relay
