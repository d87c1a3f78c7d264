// bh.host.resume/1: sessions that go on after the process was started again.
#include "bulkhead/cpp/basics.hpp"
#include "embed/host_impl.hpp"

namespace bulkhead {
namespace {

Part &part_of(void *ctx) noexcept {
  return *static_cast<Part *>(Instance::of(ctx).user);
}

std::string context_of(std::string_view id, std::string_view principal) {
  return std::string(id) + '\n' + std::string(principal);
}

bh_status seal(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error) {
  HostImpl &host = *part_of(ctx).host;
  const auto facts = host.router().session_facts(session);
  if (!facts) return bh::fail(error, BH_STALE, "there is no such session");
  const SealedSession sealed{host.epoch(), facts->caps, facts->revision};
  *out = bh::buf(host.sealer().seal(sealed, context_of(bh::view(id), facts->principal)));
  return BH_OK;
}

bh_status reopen(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                 bh_error *error) {
  Part &part = part_of(ctx);
  HostImpl &host = *part.host;
  const auto opened =
      host.sealer().open(bh::view(sealed), context_of(bh::view(id), bh::view(peer->principal)));
  if (!opened || opened->epoch >= host.epoch() || !host.reopens_sessions()) return BH_STALE;
  const bh_status status = host.router().session_open(*part.end, *peer, out, error);
  if (status != BH_OK) return status;
  host.router().session_restore(*out, opened->revision, opened->caps);
  return BH_OK;
}

}  // namespace

bh_host_resume resume_functions() noexcept {
  return {sizeof(bh_host_resume), 0, seal, reopen};
}

// One that was idle for longer would have ended anyway.
bool HostImpl::reopens_sessions() const noexcept {
  return reactor_->now_ns() - created_ns_ < profile_.limits.session_idle_ms * 1'000'000u;
}

}  // namespace bulkhead
