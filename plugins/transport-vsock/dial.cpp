#include "transport-vsock/dial.hpp"

#include <bulkhead/abi/ext/draft/listen.h>

#include <unistd.h>

#include <utility>

namespace transport_vsock {
namespace {

struct Job {
  const bh::Host &host;
  Address address;
  std::shared_ptr<const bool> alive;
  Dialled done;
  Socket socket;
  bh_error error = bh::make_error();
};

const bh_host_listen *sockets_of(const bh::Host &host) {
  const auto *table = host.ext<bh_host_listen>(BH_EXT_HOST_LISTEN);
  return table != nullptr && BH_HAS(bh_host_listen, table, dial) ? table : nullptr;
}

void work(Job &job) {
  const bh_host_listen *sockets = sockets_of(job.host);
  std::int32_t fd = -1;
  const bh_status status =
      sockets->dial(job.host.ctx(), &job.address.raw, job.address.size, &fd, &job.error);
  if (status == BH_OK) job.socket = Socket(fd);
}

void finish(Job &finished) {
  const std::unique_ptr<Job> job(&finished);
  if (*job->alive) job->done(std::move(job->socket), std::string(bh::text(job->error)));
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) ::close(fd_);
}

bh_status will_dial(const bh::Host &host, const Address &address, bh_error *error) {
  const bh_host_listen *sockets = sockets_of(host);
  if (sockets == nullptr) {
    return bh::fail(error, BH_E_UNSUPPORTED, "the host does not open connections for transports");
  }
  return sockets->will_dial(host.ctx(), &address.raw, address.size, error);
}

bh_status dial(const bh::Host &host, const Address &address, std::shared_ptr<const bool> alive,
               Dialled done) {
  auto job = std::make_unique<Job>(Job{host, address, std::move(alive), std::move(done), {}});
  const bh_status status = host.run_blocking(bh::blocking_work<work, finish>(job.get()));
  if (status == BH_OK) (void)job.release();
  return status;
}

}  // namespace transport_vsock
