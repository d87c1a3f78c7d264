#include "route/client_meta.hpp"

#include "mcp/for_each.hpp"
#include "mcp/request_meta_names.hpp"
#include "route/result_form.hpp"

namespace bulkhead {
namespace {

constexpr const char *subscription_id = "io.modelcontextprotocol/subscriptionId";

bool is_subscription_id(std::string_view key) noexcept {
  return mcp::json::same_text(key.substr(1, key.size() - 2), subscription_id);
}

// Removes runs of adjacent members. With each run, one of the commas around it is removed.
class MemberRemoval {
 public:
  MemberRemoval(Splice *splice, std::string_view message) noexcept
      : splice_(splice), message_(message) {}

  void add(std::string_view key, std::string_view value, bool removed) noexcept {
    const auto begin = static_cast<std::uint32_t>(key.data() - message_.data());
    const auto end = static_cast<std::uint32_t>(value.data() - message_.data() + value.size());
    if (removed) {
      if (run_.empty()) run_.begin = kept_ ? kept_end_ : begin;
      run_.end = end;
      return;
    }
    // If a run precedes the first remaining member, the comma after the run is removed with it.
    if (!run_.empty() && !kept_) run_.end = begin;
    finish();
    kept_ = true;
    kept_end_ = end;
  }
  void finish() noexcept {
    splice_->remove(run_);
    run_ = {};
  }
  bool kept() const noexcept { return kept_; }

 private:
  Splice *splice_;
  std::string_view message_;
  mcp::Range run_;
  std::uint32_t kept_end_ = 0;
  bool kept_ = false;
};

// Removes the members of _meta for which `removed` returns true. Returns true if other members
// remain.
bool remove_from_meta(Splice *splice, const Message &message,
                      bool (*removed)(std::string_view)) noexcept {
  MemberRemoval removal(splice, message.bytes);
  mcp::for_each_member(
      message[message.scan->meta],
      [&](std::string_view key, std::string_view value) { removal.add(key, value, removed(key)); });
  removal.finish();
  return removal.kept();
}

}  // namespace

bool remove_client_meta(Splice *splice, const Message &request, bool replaced) noexcept {
  const mcp::Range meta = request.scan->meta;
  if (meta.empty()) return false;
  if (!replaced && !request.scan->modern) return has_members(request[meta]);
  if (request.scan->meta_others == 0) {
    splice->remove({meta.begin + 1, meta.end - 1});
    return false;
  }
  return remove_from_meta(splice, request, &mcp::is_request_meta);
}

bool remove_subscription_id(Splice *splice, const Message &notification) noexcept {
  if (notification.scan->meta.empty()) return false;
  return remove_from_meta(splice, notification, &is_subscription_id);
}

}  // namespace bulkhead
