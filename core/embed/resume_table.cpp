// Implements bh.host.resume/1, with which transports resume sessions after a process restart.
#include "bulkhead/cpp/basics.hpp"
#include "embed/extension_tables.hpp"
#include "embed/host_parts.hpp"
#include "embed/part.hpp"
#include "embed/seal.hpp"
#include "route/clients.hpp"
#include "route/restored_sessions.hpp"
#include "route/session_journal.hpp"

namespace bulkhead {
namespace {

// Returns the context that is authenticated together with a sealed session. It binds the session to
// one transport instance, because only that transport knows whether the session is still open.
std::string context_of(const Part &part, std::string_view id, std::string_view principal) {
  return std::string(id) + '\n' + part.use.id + '\n' + std::string(principal);
}

bh_status seal(void *ctx, bh_session session, bh_str id, bh_buf *out, bh_error *error) {
  const Part &part = part_of(ctx);
  const HostParts &host = *part.host;
  const ClientParts &clients = host.core.route().clients;
  if (!host.core.reopens_sessions()) clients.journal.too_old();
  const auto facts = clients.sessions.facts(session);
  if (!facts) return bh::fail(error, BH_STALE, "no such session");
  const SealedSession sealed{host.core.options.epoch, facts->caps, facts->revision,
                             host.core.reactor->now_ns()};
  *out = bh::buf(host.sealer.seal(sealed, context_of(part, bh::view(id), facts->principal)));
  clients.journal.remember(session, bh::view(id), {sealed.since_ns, false});
  return BH_OK;
}

bh_status reopen(void *ctx, const bh_peer *peer, bh_str id, bh_str sealed, bh_session *out,
                 bh_error *error) {
  Part &part = part_of(ctx);
  const HostParts &host = *part.host;
  const auto opened =
      host.sealer.open(bh::view(sealed), context_of(part, bh::view(id), bh::view(peer->principal)));
  if (!opened) return BH_STALE;
  const ClientParts &clients = host.core.route().clients;
  const SealTime since{opened->since_ns, opened->epoch < host.core.options.epoch};
  if (!clients.journal.may_reopen(bh::view(id), since, host.core.reopens_sessions()))
    return BH_STALE;
  const bh_status status = clients.sessions.open(*part.end, *peer, out, error);
  if (status != BH_OK) return status;
  clients.restored.restore(*out, opened->revision, opened->caps, bh::view(id), since);
  return BH_OK;
}

bh_status carry(void *ctx, const bh_peer *peer, bh_session *out, bh_carried *before,
                bh_error *error) {
  Part &part = part_of(ctx);
  const ClientParts &clients = part.host->core.route().clients;
  if (!clients.journal.carries()) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    clients.journal.ledger() == nullptr
                        ? "this process does not store sessions for a restart"
                        : "this process cannot serve another client");
  }
  bh_session session = 0;
  const bh_status status = clients.sessions.open(*part.end, *peer, &session, error);
  if (status != BH_OK) return status;
  const auto carried = clients.restored.carry(session);
  if (!carried) {
    clients.sessions.close(session, BH_SESSION_GONE);
    return bh::fail(error, BH_E_UNSUPPORTED, "this process cannot serve another client");
  }
  *out = session;
  before->restored = carried->restored ? 1 : 0;
  before->last_stream = carried->last_stream;
  before->note = carried->note;
  before->unread = bh::str(carried->unread);
  return BH_OK;
}

void note(void *ctx, bh_session session, std::uint64_t note) {
  part_of(ctx).host->core.route().clients.journal.note(session, note);
}
void settled(void *ctx, bh_session session, std::uint64_t stream) {
  part_of(ctx).host->core.route().clients.journal.settle(session, stream);
}
bh_status keep(void *ctx, bh_session session, bh_str bytes, std::int32_t more) {
  return part_of(ctx).host->core.route().clients.journal.keep(session, bh::view(bytes), more != 0)
             ? BH_OK
             : BH_E_LIMIT;
}
void taken(void *ctx, bh_session session, std::uint64_t n) {
  part_of(ctx).host->core.route().clients.journal.taken(session, n);
}

}  // namespace

bh_host_resume resume_functions() noexcept {
  return {sizeof(bh_host_resume), 0, seal, reopen, carry, note, settled, keep, taken};
}

}  // namespace bulkhead
