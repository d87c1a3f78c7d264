#include "route/client_batches.hpp"

#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"
#include "route/json_rpc.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

// Maximum length of the id in an error that replaces a response.
constexpr std::size_t max_repeated_id = 1024;

// Returns the id of a response, or an empty string if it has no id or the id is too long to be
// repeated in an error.
std::string id_of(std::string_view answer) {
  mcp::Scan scan;
  mcp::ScanError error;
  const bool read = mcp::scan(answer, &scan, &error) && scan.id.size() <= max_repeated_id;
  return read ? std::string(scan.id.in(answer)) : std::string();
}

}  // namespace

std::uint64_t ClientBatches::open(const ReplyTo &reply) {
  return insert({reply, 1, "["});
}

std::uint64_t ClientBatches::open_silent(const ReplyTo &reply, std::function<void()> on_end) {
  Batch batch{reply, 1, "["};
  batch.silent = true;
  batch.on_end = std::move(on_end);
  return insert(std::move(batch));
}

std::uint64_t ClientBatches::insert(Batch batch) {
  Session *s = sessions_.find(batch.reply.session);
  const std::uint64_t handle = batches_.insert(std::move(batch));
  if (s != nullptr) s->batches.push_back(handle);
  return handle;
}

bool ClientBatches::add(std::uint64_t handle) {
  Batch *batch = batches_.get(handle);
  if (batch != nullptr) ++batch->open;
  return batch != nullptr;
}

void ClientBatches::expect_answer(std::uint64_t handle) {
  if (Batch *batch = batches_.get(handle)) batch->expects_answer = true;
}

void ClientBatches::put(std::uint64_t handle, const bh_str *parts, std::uint32_t count) {
  Batch *batch = batches_.get(handle);
  if (batch == nullptr || batch->silent || count == 0) return;
  Session *s = sessions_.find(batch->reply.session);
  if (s == nullptr) return;
  std::string text;
  for (std::uint32_t i = 0; i < count; ++i) text.append(bh::view(parts[i]));
  text = bounded(*s, std::move(text));
  if (batch->body.size() > 1) batch->body += ',';
  batch->body += text;
  batch->bytes += text.size();
  s->batched_bytes += text.size();
}

std::string ClientBatches::bounded(const Session &s, std::string answer) const {
  const std::uint64_t most = limits_.write_queue_bytes;
  if (s.batched_bytes + answer.size() <= most) return answer;
  std::string instead =
      error_message(id_of(answer), code::timeout,
                    "too many response bytes are queued in batches of this session "
                    "(limits.write_queue_bytes = " +
                        std::to_string(most) + "); the response was dropped");
  return instead.size() < answer.size() ? instead : answer;
}

std::optional<ClientBatches::Complete> ClientBatches::end_one(std::uint64_t handle) {
  Batch *batch = batches_.get(handle);
  if (batch == nullptr || --batch->open != 0) return std::nullopt;
  Complete out{batch->reply, {}, batch->expects_answer};
  if (batch->body.size() > 1) out.body = std::move(batch->body) + "]";
  if (Session *s = sessions_.find(out.reply.session)) {
    s->batched_bytes -= batch->bytes;
    std::erase(s->batches, handle);
  }
  const std::function<void()> on_end = std::move(batch->on_end);
  batches_.erase(handle);
  if (on_end) on_end();
  return out;
}

void ClientBatches::forget_session(Session &s) {
  for (const std::uint64_t handle : std::exchange(s.batches, {})) batches_.erase(handle);
}

}  // namespace bulkhead
