#include "connector-vsock/definition.hpp"

#include <rapidjson/document.h>
#include <sys/un.h>

#include "mcp-frame/frame.hpp"
#include "mcp-frame/metadata_line.hpp"
#include "mcp-frame/process_name.hpp"

namespace connector_vsock {
namespace {

using Value = rapidjson::Value;

class Reader {
 public:
  Reader(const Value &root, bh_error *error) : root_(root), error_(error) {}

  bool ok() const noexcept { return ok_; }

  bool text(const char *name, std::string *out) {
    const auto at = root_.FindMember(name);
    if (at == root_.MemberEnd()) return false;
    if (!at->value.IsString()) return refuse(name, "must be a string");
    out->assign(at->value.GetString(), at->value.GetStringLength());
    return true;
  }
  void number(const char *name, std::uint32_t *out) {
    const auto at = root_.FindMember(name);
    if (at == root_.MemberEnd()) return;
    if (!at->value.IsUint()) {
      refuse(name, "must be a number from 0 to 4294967295");
    } else {
      *out = at->value.GetUint();
    }
  }
  void flag(const char *name, bool *out) {
    const auto at = root_.FindMember(name);
    if (at == root_.MemberEnd()) return;
    if (!at->value.IsBool()) {
      refuse(name, "must be true or false");
    } else {
      *out = at->value.GetBool();
    }
  }
  bool path(const char *name, std::string *out) {
    if (!text(name, out)) return false;
    if (out->empty() || out->size() >= sizeof(sockaddr_un::sun_path) ||
        out->find('\0') != std::string::npos) {
      return refuse(name, "must be the path of a socket, 1 to 107 bytes long");
    }
    return true;
  }
  bool refuse(const char *name, const char *why) {
    if (ok_) bh::fail(error_, BH_E_INVALID, std::string(name) + " " + why);
    ok_ = false;
    return false;
  }

 private:
  const Value &root_;
  bh_error *const error_;
  bool ok_ = true;
};

}  // namespace

std::size_t Definition::max_total() const noexcept {
  if (max_message_bytes == 0) return mcp_frame::max_total;
  return std::size_t{max_message_bytes} + mcp_frame::header_bytes + mcp_frame::max_name;
}

std::string Definition::address() const {
  switch (kind) {
    case AddressKind::unix_socket:
      return "unix:" + path;
    case AddressKind::hybrid:
      return "hybrid:" + path + ":" + std::to_string(port);
    case AddressKind::vsock:
      break;
  }
  return "vsock:" + std::to_string(cid) + ":" + std::to_string(port);
}

bh_status parse_definition(std::string_view json, Definition *out, bh_error *error) {
  rapidjson::Document root;
  root.Parse<rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag>(json.data(),
                                                                                     json.size());
  if (root.HasParseError() || !root.IsObject()) {
    return bh::fail(error, BH_E_INVALID, "the definition is not a JSON object");
  }
  Reader reader(root, error);
  std::string name;
  reader.number("cid", &out->cid);
  reader.number("port", &out->port);
  if (reader.path("unix", &out->path)) out->kind = AddressKind::unix_socket;
  if (reader.path("hybrid", &out->path)) {
    if (out->kind == AddressKind::unix_socket)
      reader.refuse("hybrid", "cannot be combined with unix");
    out->kind = AddressKind::hybrid;
  }
  reader.text("meta_prefix", &out->meta_prefix);
  if (!mcp_frame::is_metadata_prefix(out->meta_prefix)) {
    reader.refuse("meta_prefix", "must have 1 to 32 characters from A-Z, 0-9 and _");
  }
  if (reader.text("process_name", &name)) {
    out->process_name = mcp_frame::clean_process_name(name);
  }
  reader.flag("duplex", &out->duplex);
  reader.number("max_message_bytes", &out->max_message_bytes);
  return reader.ok() ? BH_OK : BH_E_INVALID;
}

}  // namespace connector_vsock
