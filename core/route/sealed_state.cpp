#include "route/sealed_state.hpp"

#include <sodium.h>

#include <cstring>
#include <initializer_list>

#include "mcp/value_digest.hpp"

namespace bulkhead {
namespace {

constexpr unsigned char format = 1;
constexpr char purpose[] = "reqstate";

using Hash = mcp::ValueDigest;

// The header of a state, which is followed by the payload. Numbers are little-endian.
struct StateHead {
  static constexpr std::size_t bytes =
      2 + sizeof(std::uint32_t) + sizeof(std::uint64_t) + 3 * std::tuple_size_v<Hash>;
  StateKind kind = StateKind::server;
  std::uint32_t epoch = 0;
  std::uint64_t expires_ns = 0;
  Hash principal{}, target{}, arguments{};
};

class StateWriter {
 public:
  explicit StateWriter(std::string *out) : out_(*out) {}
  template <class T>
  void add(const T &value) {
    out_.append(reinterpret_cast<const char *>(&value), sizeof value);
  }

 private:
  std::string &out_;
};

class StateReader {
 public:
  explicit StateReader(const std::string &text) : at_(text.data()) {}
  template <class T>
  void take(T *value) {
    std::memcpy(value, at_, sizeof *value);
    at_ += sizeof *value;
  }

 private:
  const char *at_;
};

void write_head(const StateHead &head, std::string *out) {
  StateWriter writer(out);
  writer.add(format);
  writer.add(head.kind);
  writer.add(head.epoch);
  writer.add(head.expires_ns);
  writer.add(head.principal);
  writer.add(head.target);
  writer.add(head.arguments);
}

// Parses the header of an unsealed state. Returns false if the text does not have the format that
// this version writes.
bool read_head(const std::string &text, StateHead *out) {
  if (text.size() < StateHead::bytes) return false;
  StateReader reader(text);
  unsigned char is_format = 0, kind = 0;
  reader.take(&is_format);
  reader.take(&kind);
  reader.take(&out->epoch);
  reader.take(&out->expires_ns);
  reader.take(&out->principal);
  reader.take(&out->target);
  reader.take(&out->arguments);
  out->kind = static_cast<StateKind>(kind);
  return is_format == format && (out->kind == StateKind::server || out->kind == StateKind::parked);
}

// Returns the hash of the strings, each preceded by its size.
Hash hash_of(std::initializer_list<std::string_view> parts) {
  crypto_hash_sha256_state state;
  crypto_hash_sha256_init(&state);
  for (const std::string_view text : parts) {
    const std::uint64_t size = text.size();
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char *>(&size), sizeof size);
    crypto_hash_sha256_update(&state, reinterpret_cast<const unsigned char *>(text.data()),
                              text.size());
  }
  Hash out;
  crypto_hash_sha256_final(&state, out.data());
  return out;
}

Hash principal_hash(const StateBinding &binding) {
  return hash_of({binding.principal});
}

Hash target_hash(const StateBinding &binding) {
  return hash_of({mcp::to_string(binding.method), binding.name});
}

std::optional<Hash> arguments_hash(const StateBinding &binding) {
  return mcp::value_digest(binding.arguments.empty() ? "{}" : binding.arguments);
}

TextSealer sealer_with(std::string_view key) {
  const TextSealer given{std::string(key)};
  return given.usable() ? given.for_purpose(purpose) : TextSealer::with_random_key();
}

}  // namespace

std::string_view to_string(StateFault fault) noexcept {
  switch (fault) {
    case StateFault::forged:
      return "requestState is not one that this gateway has issued";
    case StateFault::earlier_epoch:
      return "requestState is from before a restart of the gateway: send the request without it";
    case StateFault::expired:
      return "requestState has expired: send the request without it";
    case StateFault::other_principal:
      return "requestState was issued to another client";
    case StateFault::other_target:
      return "requestState belongs to a request with another method, name or URI";
    case StateFault::other_arguments:
      return "requestState belongs to a request with other arguments";
  }
  return "requestState is invalid";
}

StateSealer::StateSealer(std::string_view key, std::uint32_t epoch)
    : sealer_(sealer_with(key)), epoch_(epoch) {}

std::optional<std::string> StateSealer::seal(StateKind kind, std::string_view payload,
                                             const StateBinding &binding,
                                             std::uint64_t expires_ns) const {
  const std::optional<Hash> arguments = arguments_hash(binding);
  if (payload.size() > max_payload || !arguments) return std::nullopt;
  const StateHead head{kind,      epoch_, expires_ns, principal_hash(binding), target_hash(binding),
                       *arguments};
  std::string plain;
  plain.reserve(StateHead::bytes + payload.size());
  write_head(head, &plain);
  plain.append(payload);
  return sealer_.seal(plain, {});
}

std::expected<OpenedState, StateFault> StateSealer::open(std::string_view state,
                                                         const StateBinding &binding,
                                                         std::uint64_t now_ns) const {
  const std::optional<std::string> plain = sealer_.open(state, {}, StateHead::bytes + max_payload);
  StateHead head;
  if (!plain || !read_head(*plain, &head)) return std::unexpected(StateFault::forged);
  if (head.epoch != epoch_) return std::unexpected(StateFault::earlier_epoch);
  if (now_ns >= head.expires_ns) return std::unexpected(StateFault::expired);
  if (head.principal != principal_hash(binding)) {
    return std::unexpected(StateFault::other_principal);
  }
  if (head.target != target_hash(binding)) return std::unexpected(StateFault::other_target);
  if (head.arguments != arguments_hash(binding)) {
    return std::unexpected(StateFault::other_arguments);
  }
  return OpenedState{head.kind, plain->substr(StateHead::bytes)};
}

}  // namespace bulkhead
