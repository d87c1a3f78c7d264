// Implements the snapshots_create, snapshots_delete, snapshots_compact and snapshots_list tools.
#include "builtin-files/snapshots/snapshot_tools.hpp"

#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <time.h>

#include <algorithm>

#include "builtin-files/snapshots/compare.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

using tool_kit::error_result;

constexpr std::uint64_t default_versions = 5000, max_versions = 1u << 20;
constexpr std::size_t max_listed_changes = 1000;  // per snapshot, with include_changes

SnapshotStore &store_for(const Call &call, const Workspace &workspace) {
  return **std::find_if(call.snapshots->begin(), call.snapshots->end(),
                        [&](const auto &s) { return &s->workspace() == &workspace; });
}

std::string_view origin_of(const Head &head) {
  return head.manual ? "manual" : "auto";
}

void note_snapshot(const Call &call, const Head &head) {
  if (call.snapshot_events == nullptr) return;
  call.snapshot_events->push_back("{\"slot\":" + std::to_string(head.slot) + ",\"origin\":\"" +
                                  std::string(origin_of(head)) +
                                  "\",\"name\":" + bh::json::quoted(head.name) +
                                  ",\"files_count\":" + std::to_string(head.files) + "}");
}

std::size_t manual_available(const SnapshotStore &store) {
  const std::vector<Head> there = store.heads();
  const auto used =
      std::count_if(there.begin(), there.end(), [](const Head &h) { return h.manual; });
  return manual_slots - static_cast<std::size_t>(used);
}

// ---- snapshots_list --------------------------------------------------------------------------

// Summarizes the changes between a snapshot and the previous snapshot.
struct Summary {
  std::uint64_t created = 0, edited = 0, deleted = 0;
  std::string changes;  // JSON array elements for the first max_listed_changes changes
};

Summary summary_of(const Manifest &snapshot, const Entries &before) {
  Summary out;
  for_each_change(snapshot.entries, before, same_entry, [&](const Change &c) {
    const std::uint64_t count = out.created + out.edited + out.deleted;
    ++(c.op == Op::created ? out.created : c.op == Op::modified ? out.edited : out.deleted);
    if (count >= max_listed_changes) return;
    out.changes += (count > 0 ? "," : "") + std::string("{\"path\":") +
                   bh::json::quoted(c.entry().path) + ",\"op\":\"" + std::string(op_name(c.op)) +
                   "\"}";
  });
  return out;
}

std::string summary_json(const Summary &s) {
  return "{\"created\":" + std::to_string(s.created) + ",\"edited\":" + std::to_string(s.edited) +
         ",\"deleted\":" + std::to_string(s.deleted) +
         ",\"total\":" + std::to_string(s.created + s.edited + s.deleted) + "}";
}

std::string listed_json(const Head &h, const Summary &s, bool with_changes) {
  std::string out = "{\"checkpoint\":\"" + checkpoint_name(h.slot) + "\"";
  out += ",\"slot\":" + std::to_string(h.slot);
  out += ",\"origin\":\"" + std::string(origin_of(h)) + "\"";
  out += ",\"name\":" + bh::json::quoted(h.name) + ",\"hash\":\"" + hex(h.hash) + "\"";
  out += ",\"age\":\"" + age_of(h) + "\",\"created\":\"" + utc_time(h.created_s) + "\"";
  out += ",\"files_count\":" + std::to_string(h.files);
  out += ",\"skipped_count\":" + std::to_string(h.skipped);
  out += ",\"changes_summary\":" + summary_json(s);
  if (with_changes) out += ",\"changes\":[" + s.changes + "]";
  return out + "}";
}

std::string listed_text(const Head &h, const Summary &s) {
  std::string out = checkpoint_name(h.slot) + "  " + std::string(origin_of(h));
  if (!h.name.empty()) out += "  " + h.name;
  out += "  " + age_of(h) + "  " + std::to_string(h.files) + " files  +" +
         std::to_string(s.created) + " ~" + std::to_string(s.edited) + " -" +
         std::to_string(s.deleted) + "\n";
  return out;
}

struct Listing {
  std::string json, text;
  std::string problem;
};

Listing list_all(const Call &call, const SnapshotStore &store, bool with_changes) {
  Listing out;
  const std::vector<Head> there = store.heads();
  Entries before;
  for (auto head = there.rbegin(); head != there.rend(); ++head) {
    if (call.must_stop()) return {{}, {}, "the call was cancelled or timed out"};
    auto snapshot = store.load(head->slot);
    const Summary s = snapshot ? summary_of(*snapshot, before) : Summary();
    if (snapshot) before = std::move(snapshot->entries);
    const std::string text =
        snapshot ? listed_text(*head, s) : checkpoint_name(head->slot) + "  is damaged\n";
    out.text.insert(0, text);
    out.json.insert(0, listed_json(*head, s, with_changes) + (out.json.empty() ? "" : ","));
  }
  const std::string available = std::to_string(manual_available(store));
  out.json = "{\"snapshots\":[" + out.json + "],\"auto_max\":" + std::to_string(auto_slots) +
             ",\"manual_max\":" + std::to_string(manual_slots) +
             ",\"manual_available\":" + available + "}";
  if (there.empty()) out.text = "There are no snapshots.\n";
  out.text += available + " manual slots are free.\n";
  return out;
}

// ---- snapshots_compact -----------------------------------------------------------------------

std::string compact_problem(const std::vector<std::string> &names, std::vector<unsigned> *slots) {
  if (names.size() > all_slots) return "specify at most 22 snapshots";
  for (const std::string &name : names) {
    const auto slot = checkpoint_slot(name);
    if (!slot) return shown(name) + " is not a snapshot name such as cp-10";
    slots->push_back(*slot);
  }
  return {};
}

std::string compacted(const SnapshotStore::Compacted &c) {
  std::string list;
  for (const unsigned slot : c.sources) {
    list += (list.empty() ? "\"" : ",\"") + checkpoint_name(slot) + "\"";
  }
  const std::string checkpoint = checkpoint_name(c.head.slot);
  const std::string count = std::to_string(c.sources.size());
  const std::string json = "{\"compacted\":true,\"checkpoint\":\"" + checkpoint +
                           "\",\"name\":" + bh::json::quoted(c.head.name) + ",\"hash\":\"" +
                           hex(c.head.hash) + "\",\"merged_count\":" + count +
                           ",\"deleted_checkpoints\":[" + list +
                           "],\"files_count\":" + std::to_string(c.head.files) + "}";
  return tool_kit::text_result(json, json);
}

}  // namespace

// ---- shared helpers --------------------------------------------------------------------------

SnapshotStore &store_of(const Call &call) {
  return store_for(call, call.workspace());
}

SnapshotStore &store_to_change(const Call &call) {
  return store_for(call, call.workspace_to_change());
}

bool is_snapshot_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), [](char c) {
    return bh::is_letter_or_digit(c) || c == '_' || c == '-';
  });
}

std::string age_of(const Head &head) {
  const std::int64_t minutes = (::time(nullptr) - head.created_s) / 60;
  if (minutes < 1) return "just now";
  return minutes < 60 ? std::to_string(minutes) + " min ago"
                      : std::to_string(minutes / 60) + " hr ago";
}

std::string plain_path(std::string_view path) {
  std::string out;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view step = path.substr(0, slash);
    if (!step.empty() && step != ".") out += (out.empty() ? "" : "/") + std::string(step);
    path = slash == path.npos ? std::string_view() : path.substr(slash + 1);
  }
  return out.empty() ? "." : out;
}

std::string page_of(std::string_view text, std::uint64_t start, std::uint64_t length) {
  const std::size_t begin =
      bh::character_boundary(text, std::min<std::uint64_t>(start, text.size()));
  const std::size_t most = std::min<std::uint64_t>(length, text.size() - begin);
  std::size_t end = bh::character_boundary(text, begin + most);
  // A page has at least one character, even if the character is longer than `length`. Otherwise,
  // the caller would make no progress.
  for (std::size_t n = most; end <= begin && end < text.size(); ++n) {
    end = bh::character_boundary(text, begin + n);
  }
  std::string out(text.substr(begin, end - begin));
  if (end < text.size()) {
    out += "\n(" + std::to_string(text.size() - end) + " more bytes: continue with start_index " +
           std::to_string(end) + ")";
  }
  return out;
}

std::string take_automatic(const Call &call, SnapshotStore *store) {
  std::string problem;
  const auto held = store->lock(call, &problem);
  if (!problem.empty()) return problem;
  const Outcome<Head> made = store->create_automatic(call);
  if (made.good() && made.value.slot != all_slots) note_snapshot(call, made.value);
  return made.problem;
}

// ---- the tools -------------------------------------------------------------------------------

std::string snapshots_create(const Call &call) {
  SnapshotStore &store = store_of(call);
  const std::string name = call.arguments.text("name");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  if (!is_snapshot_name(name)) {
    return error_result("\"name\" must be 1 to 64 letters, digits, \"_\" and \"-\"");
  }
  std::string problem;
  const auto held = store.lock(call, &problem);
  if (!problem.empty()) return error_result(problem);
  const Outcome<Head> made = store.create(call, name);
  if (!made.good()) return error_result(made.problem);
  note_snapshot(call, made.value);
  const std::string json = "{\"checkpoint\":\"" + checkpoint_name(made.value.slot) +
                           "\",\"name\":" + bh::json::quoted(name) + ",\"hash\":\"" +
                           hex(made.value.hash) +
                           "\",\"available\":" + std::to_string(manual_available(store)) +
                           ",\"files_count\":" + std::to_string(made.value.files) +
                           ",\"skipped_count\":" + std::to_string(made.value.skipped) + "}";
  return tool_kit::text_result(json, json);
}

std::string snapshots_delete(const Call &call) {
  SnapshotStore &store = store_of(call);
  const std::string checkpoint = call.arguments.text("checkpoint");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  const auto slot = checkpoint_slot(checkpoint);
  if (!slot) return error_result(shown(checkpoint) + " is not a snapshot name such as cp-10");
  std::string problem;
  const auto held = store.lock(call, &problem);
  if (problem.empty()) problem = store.remove(call, *slot);
  if (!problem.empty()) return error_result(problem);
  const std::string json = "{\"deleted\":true,\"checkpoint\":\"" + checkpoint + "\"}";
  return tool_kit::text_result(json, json);
}

std::string snapshots_list(const Call &call) {
  SnapshotStore &store = store_of(call);
  const bool as_json = call.arguments.choice("format", {"text", "json"}) == "json";
  const bool with_changes = call.arguments.flag("include_changes", false);
  const std::uint64_t start = call.arguments.whole("start_index", 0, 0, max_versions);
  const std::uint64_t length =
      call.arguments.whole("max_length", default_versions, 1, max_versions);
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  std::string problem;
  const auto held = store.lock(call, &problem);
  if (!problem.empty()) return error_result(problem);
  const Listing list = list_all(call, store, with_changes);
  if (!list.problem.empty()) return error_result(list.problem);
  return tool_kit::text_result(as_json ? list.json : page_of(list.text, start, length), list.json);
}

std::string snapshots_compact(const Call &call) {
  SnapshotStore &store = store_of(call);
  const std::vector<std::string> names = call.arguments.texts("checkpoints");
  const std::string name =
      call.arguments.text("name", "compacted_" + std::to_string(::time(nullptr)));
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  if (!is_snapshot_name(name)) {
    return error_result("\"name\" must be 1 to 64 letters, digits, \"_\" and \"-\"");
  }
  std::vector<unsigned> slots;
  std::string problem = compact_problem(names, &slots);
  if (!problem.empty()) return error_result(problem);
  const auto held = store.lock(call, &problem);
  if (!problem.empty()) return error_result(problem);
  const auto made = store.compact(call, slots, name);
  if (!made.good()) return error_result(made.problem);
  note_snapshot(call, made.value.head);
  return compacted(made.value);
}

}  // namespace builtin_files
