#include "transport-vsock/config.hpp"

#include <arpa/inet.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <rapidjson/document.h>
#include <sys/un.h>
#include <bulkhead/cpp/basics.hpp>

#include <charconv>
#include <cstring>

#include "mcp-frame/metadata_line.hpp"

namespace transport_vsock {
namespace {

using rapidjson::Value;

constexpr std::size_t max_list = 1'024;
constexpr std::uint64_t max_ms = 86'400'000;
constexpr std::uint32_t overflow_uid = 65'534;  // the kernel's default

std::string_view text_of(const Value &value) {
  return {value.GetString(), value.GetStringLength()};
}

// Collects all errors, so that they are reported together.
class Reader {
 public:
  explicit Reader(const Value &object) : object_(object) {}

  void text(const char *name, std::string *out) {
    const Value *value = take(name);
    if (value == nullptr) return;
    if (!value->IsString()) return fault(std::string(name) + " must be a string");
    *out = text_of(*value);
  }
  void number(const char *name, std::uint64_t least, std::uint64_t most, std::uint64_t *out) {
    const Value *value = take(name);
    if (value == nullptr) return;
    if (value->IsUint64() && value->GetUint64() >= least && value->GetUint64() <= most) {
      *out = value->GetUint64();
    } else {
      fault(std::string(name) + " must be between " + std::to_string(least) + " and " +
            std::to_string(most));
    }
  }
  template <class T, class Read>
  void list(const char *name, const char *of, std::optional<std::vector<T>> *out, Read read) {
    const Value *value = take(name);
    if (value == nullptr) return;
    out->emplace();
    bool good = value->IsArray() && value->Size() <= max_list;
    if (good) {
      for (const Value &item : value->GetArray()) good = good && read(item, &**out);
    }
    if (!good) fault(std::string(name) + " must be a list of at most 1024 " + of);
  }
  void nothing_else() {
    for (const auto &member : object_.GetObject()) {
      bool known = false;
      for (const std::string_view name : taken_) known = known || name == text_of(member.name);
      if (!known) fault("'" + std::string(text_of(member.name)) + "' is unknown");
    }
  }
  void fault(const std::string &text) { faults_ += (faults_.empty() ? "" : "; ") + text; }
  const std::string &faults() const { return faults_; }

 private:
  const Value *take(const char *name) {
    taken_.push_back(name);
    const auto it = object_.FindMember(name);
    return it == object_.MemberEnd() ? nullptr : &it->value;
  }
  const Value &object_;
  std::vector<std::string_view> taken_;
  std::string faults_;
};

template <class T>
bool parse_number(std::string_view text, T *out) {
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return failed == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <class Raw>
bool store(const Raw &raw, Address *out) {
  std::memcpy(&out->raw, &raw, sizeof raw);
  out->size = sizeof raw;
  return true;
}

bool parse_unix(std::string_view path, Address *out) {
  sockaddr_un raw{};
  if (path.empty() || path.size() >= sizeof raw.sun_path) return false;
  raw.sun_family = AF_UNIX;
  std::memcpy(raw.sun_path, path.data(), path.size());
  return store(raw, out);
}

bool parse_vsock(std::string_view text, Address *out) {
  sockaddr_vm raw{};
  raw.svm_family = AF_VSOCK;
  raw.svm_cid = VMADDR_CID_ANY;
  if (const std::size_t colon = text.find(':'); colon != text.npos) {
    const std::string_view cid = text.substr(0, colon);
    if (cid != "any" && !parse_number(cid, &raw.svm_cid)) return false;
    text.remove_prefix(colon + 1);
  }
  // VMADDR_PORT_ANY is rejected, because the kernel would choose a port that no guest knows.
  return parse_number(text, &raw.svm_port) && raw.svm_port != VMADDR_PORT_ANY && store(raw, out);
}

// Parses PATH:PORT. Connections from guests arrive at the socket PATH_PORT. Connections to guests
// use the socket PATH.
bool parse_hybrid(std::string_view text, bool toward_guest, Address *out) {
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || !parse_number(text.substr(colon + 1), &out->guest_port)) return false;
  std::string path(text.substr(0, colon));
  if (!path.empty() && !toward_guest) path += "_" + std::to_string(out->guest_port);
  return parse_unix(path, out);
}

bool parse_loopback(std::string_view text, Address *out) {
  const std::size_t colon = text.rfind(':');
  std::uint16_t port = 0;
  if (colon == text.npos || !parse_number(text.substr(colon + 1), &port) || port == 0) return false;
  std::string host(text.substr(0, colon));
  if (host == "localhost") host = "127.0.0.1";
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(port);
  if (::inet_pton(AF_INET, host.c_str(), &v4.sin_addr) == 1) {
    return ntohl(v4.sin_addr.s_addr) >> 24 == 127 && store(v4, out);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = in6addr_loopback;
  return host == "[::1]" && store(v6, out);
}

bool consume_prefix(std::string_view *text, std::string_view prefix) {
  if (!text->starts_with(prefix)) return false;
  text->remove_prefix(prefix.size());
  return true;
}

void check(const Config &config, Reader *reader) {
  if (!config.local_token.empty() &&
      (!mcp_frame::is_metadata_prefix(config.local_token) || !config.listen.starts_with("unix:"))) {
    reader->fault(
        "local_token must have 1 to 32 characters from A-Z, 0-9 and _, and requires listen = "
        "\"unix:...\"");
  }
  Address unused;
  if (!config.listen.empty() && !parse_listen(config.listen, &unused)) {
    reader->fault(
        "listen must have the form vsock:5002, vsock:2:5002, unix:/path/to/socket or "
        "hybrid:/path/of/the/monitor.sock:5002");
  }
  const bool vsock = config.listen.starts_with("vsock:");
  if (config.allow_cids && !vsock) {
    reader->fault(
        "allow_cids can be used only with listen = \"vsock:...\"; use allow_uids for Unix sockets");
  }
  if (config.allow_uids && (vsock || config.listen.empty())) {
    reader->fault("allow_uids can be used only with listen = \"unix:...\" or \"hybrid:...\"");
  }
  if (!config.dial.empty() && !parse_dial(config.dial, &unused)) {
    reader->fault("dial must have the form hybrid:/path/of/the/monitor.sock:5002");
  }
  if (!config.handoff.empty() && !parse_handoff(config.handoff, &unused)) {
    reader->fault("handoff must have the form unix:/path/to/socket or 127.0.0.1:8443");
  }
}

}  // namespace

bool parse_listen(std::string_view text, Address *out) {
  *out = {};
  if (consume_prefix(&text, "vsock:")) return parse_vsock(text, out);
  if (consume_prefix(&text, "unix:")) return parse_unix(text, out);
  return consume_prefix(&text, "hybrid:") && parse_hybrid(text, false, out);
}

bool parse_dial(std::string_view text, Address *out) {
  *out = {};
  return consume_prefix(&text, "hybrid:") && parse_hybrid(text, true, out);
}

bool parse_handoff(std::string_view text, Address *out) {
  *out = {};
  return consume_prefix(&text, "unix:") ? parse_unix(text, out) : parse_loopback(text, out);
}

bh_status parse_config(std::string_view json, Config *out, bh_error *error) {
  rapidjson::Document document;
  constexpr unsigned flags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag;
  if (json.empty()) json = "{}";
  if (json.size() > 1u << 20)
    return bh::fail(error, BH_E_INVALID, "the configuration is larger than 1 MiB");
  document.Parse<flags>(json.data(), json.size());
  if (document.HasParseError() || !document.IsObject()) {
    return bh::fail(error, BH_E_INVALID, "the configuration must be one JSON object");
  }
  Reader reader(document);
  const auto read_id = [](const Value &item, std::vector<std::uint32_t> *ids) {
    if (!item.IsUint()) return false;
    ids->push_back(item.GetUint());
    return true;
  };
  const auto read_prefix = [](const Value &item, std::vector<std::string> *prefixes) {
    if (!item.IsString() || !mcp_frame::is_metadata_prefix(text_of(item))) return false;
    prefixes->emplace_back(text_of(item));
    return true;
  };
  reader.text("listen", &out->listen);
  reader.text("dial", &out->dial);
  reader.text("handoff", &out->handoff);
  reader.list("allow_cids", "context ids", &out->allow_cids, read_id);
  reader.list("allow_uids", "user ids", &out->allow_uids, read_id);
  std::optional<std::vector<std::string>> prefixes;
  reader.list("metadata_prefixes", "strings of A-Z, 0-9 and _", &prefixes, read_prefix);
  if (prefixes) out->metadata_prefixes = *std::move(prefixes);
  reader.text("local_token", &out->local_token);
  reader.number("sniff_timeout_ms", 10, max_ms, &out->sniff_timeout_ms);
  reader.number("write_timeout_ms", 10, max_ms, &out->write_timeout_ms);
  reader.number("max_connections", 1, 100'000, &out->max_connections);
  reader.number("max_connections_per_peer", 1, 100'000, &out->max_connections_per_peer);
  reader.nothing_else();
  if (out->listen.empty() && out->dial.empty()) out->listen = "vsock:5002";
  check(*out, &reader);
  return reader.faults().empty() ? bh_status{BH_OK}
                                 : bh::fail(error, BH_E_INVALID, reader.faults());
}

std::string peer_name(int fd, const sockaddr_storage &peer, std::uint32_t *id) {
  if (peer.ss_family == AF_VSOCK) {
    *id = reinterpret_cast<const sockaddr_vm &>(peer).svm_cid;
    return "cid:" + std::to_string(*id);
  }
  ucred credentials{};
  socklen_t size = sizeof credentials;
  const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) == 0;
  *id = known && credentials.uid != overflow_uid ? credentials.uid : unknown_id;
  return *id == unknown_id ? "uid:unknown" : "uid:" + std::to_string(*id);
}

}  // namespace transport_vsock
