// Implements the snapshots_changes, snapshots_history and snapshots_revert tools.
#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <unordered_set>

#include "builtin-files/snapshots/compare.hpp"
#include "builtin-files/snapshots/objects.hpp"
#include "builtin-files/snapshots/revert.hpp"
#include "builtin-files/snapshots/snapshot_tools.hpp"
#include "tool-kit/results.hpp"

namespace builtin_files {
namespace {

using tool_kit::error_result;

constexpr std::uint64_t default_page = 5000, max_page = 64u << 20;
constexpr std::size_t max_changes = 100'000;

// ---- snapshots_changes -----------------------------------------------------------------------

struct Changes {
  std::string json, text;
  std::size_t count = 0;
  std::string problem;
};

void add(Changes *out, const Change &change, const Head &head) {
  const Entry &e = change.entry();
  const std::string op(op_name(change.op));
  const std::string checkpoint = checkpoint_name(head.slot);
  const bool is_link = e.kind == Kind::link;
  const std::string size = std::to_string(e.signature.size);
  if (out->count++ > 0) out->json += ',';
  out->json += "{\"path\":" + bh::json::quoted(e.path) + ",\"op\":\"" + op + "\",\"size\":" + size +
               ",\"is_symlink\":" + (is_link ? "true" : "false") + ",\"checkpoint\":\"" +
               checkpoint + "\",\"checkpoint_age\":\"" + age_of(head) +
               "\",\"checkpoint_origin\":\"" + (head.manual ? "manual" : "auto") +
               "\",\"checkpoint_name\":" + bh::json::quoted(head.name) + "}";
  out->text += op + "  " + bh::repaired_utf8(e.path) + "  " + size + " bytes" +
               (is_link ? " (link)" : "") + "  since " + checkpoint + "\n";
}

// Compares the workspace with each snapshot, newest first. Reports each path only once, for the
// newest snapshot that differs.
Changes changes_of(const Call &call, const SnapshotStore &store) {
  Changes out;
  const Scan now = scan(call, store.workspace(), ".");
  out.problem = now.problem;
  LiveCompare compare(call, store.workspace());
  std::uint64_t compared = 0;
  const auto same = [&](const Entry &a, const Entry &b) {
    call.report(static_cast<double>(++compared), 0);
    return compare.same(a, b);
  };
  call.next_phase();
  std::unordered_set<std::string> told;
  for (const Head &head : store.heads()) {
    if (!out.problem.empty()) break;
    const auto snapshot = store.load(head.slot);
    if (!snapshot) continue;
    for_each_change(now.entries, snapshot->entries, same, [&](const Change &c) {
      if (told.size() < max_changes && told.insert(c.entry().path).second) add(&out, c, head);
    });
    if (call.must_stop()) out.problem = stopped;
  }
  return out;
}

// ---- snapshots_history -----------------------------------------------------------------------

// The state of a path in one snapshot. `there` is false if the snapshot does not contain the path.
struct Version {
  Head head;
  bool there = false;
  Entry entry;
};

std::vector<Version> versions_of(const SnapshotStore &store, const std::string &path) {
  std::vector<Version> out;
  for (const Head &head : store.heads()) {
    const auto snapshot = store.load(head.slot);
    if (!snapshot) continue;
    const Entry *e = find_entry(snapshot->entries, path);
    out.push_back({head, e != nullptr, e != nullptr ? *e : Entry()});
  }
  return out;
}

// Returns how the path changed since the next older snapshot. Returns an empty string if neither
// snapshot contains the path.
std::string status_of(const Version &v, const Version *older) {
  const bool before = older != nullptr && older->there;
  if (!v.there) return before ? "deleted" : "";
  if (!before) return "new";
  return same_entry(v.entry, older->entry) ? "unchanged" : "modified";
}

std::string version_json(const Version &v, const std::string &status) {
  return "{\"checkpoint\":\"" + checkpoint_name(v.head.slot) + "\",\"origin\":\"" +
         (v.head.manual ? "manual" : "auto") + "\",\"name\":" + bh::json::quoted(v.head.name) +
         ",\"age\":\"" + age_of(v.head) +
         "\",\"size\":" + std::to_string(v.there ? v.entry.signature.size : 0) + ",\"status\":\"" +
         status + "\"}";
}

// ---- snapshots_revert ------------------------------------------------------------------------

bool holds(const Manifest &snapshot, const std::string &path) {
  return path == "." || find_entry(snapshot.entries, path) != nullptr;
}

// Returns the requested snapshot. If none is requested, returns the newest snapshot that contains
// the path.
Outcome<Manifest> chosen(const SnapshotStore &store, const std::string &checkpoint,
                         const std::string &path) {
  const auto wanted = checkpoint_slot(checkpoint);
  if (!checkpoint.empty() && !wanted) {
    return {{}, shown(checkpoint) + " is not a snapshot name such as cp-10"};
  }
  for (const Head &head : store.heads()) {
    if (wanted && head.slot != *wanted) continue;
    auto snapshot = store.load(head.slot);
    if (!snapshot && wanted) return {{}, "the snapshot " + checkpoint + " is damaged"};
    if (snapshot && (wanted || holds(*snapshot, path))) return {std::move(*snapshot), {}};
  }
  if (wanted) return {{}, "there is no snapshot " + checkpoint + "; see snapshots_list"};
  return {{},
          "no snapshot contains " + shown(path) +
              "; to delete files that are newer than a snapshot, specify \"checkpoint\""};
}

std::string reverted(const Reverted &done, const std::string &path, const Manifest &snapshot) {
  const std::string checkpoint = checkpoint_name(snapshot.head.slot);
  const std::string action = done.restored > 0 || holds(snapshot, path) ? "restored" : "deleted";
  const std::string json = "{\"reverted\":true,\"path\":" + bh::json::quoted(path) +
                           ",\"action\":\"" + action + "\",\"checkpoint\":\"" + checkpoint +
                           "\",\"restored\":" + std::to_string(done.restored) +
                           ",\"deleted\":" + std::to_string(done.deleted) +
                           ",\"unchanged\":" + std::to_string(done.unchanged) + "}";
  return tool_kit::text_result(json, json);
}

}  // namespace

std::string snapshots_changes(const Call &call) {
  SnapshotStore &store = store_of(call);
  const bool as_json = call.arguments.choice("format", {"text", "json"}) == "json";
  const std::uint64_t start = call.arguments.whole("start_index", 0, 0, max_page);
  const std::uint64_t length = call.arguments.whole("max_length", default_page, 1, max_page);
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  std::string problem;
  const auto held = store.lock(call, &problem);
  if (!problem.empty()) return error_result(problem);
  Changes changes = changes_of(call, store);
  if (!changes.problem.empty()) return error_result(changes.problem);
  const bool complete = changes.count < max_changes;
  if (changes.count == 0) {
    changes.text = store.heads().empty() ? "There are no snapshots to compare with.\n"
                                         : "No changes since the snapshots.\n";
  }
  const std::string list = "[" + changes.json + "]";
  return tool_kit::text_result(
      as_json ? list : page_of(changes.text, start, length),
      "{\"changes\":" + list + ",\"complete\":" + (complete ? "true" : "false") + "}");
}

std::string snapshots_history(const Call &call) {
  SnapshotStore &store = store_of(call);
  const std::string path = plain_path(call.arguments.text("path"));
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  if (path == ".") return error_result("specify the path of one file");
  std::string problem;
  const auto held = store.lock(call, &problem);
  if (!problem.empty()) return error_result(problem);
  const Place place = store.workspace().place(path, false, Links::refuse);
  const Scan now = scan_one(store.workspace(), path);
  const std::vector<Version> versions = versions_of(store, path);
  std::string list;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string status =
        status_of(versions[i], i + 1 < versions.size() ? &versions[i + 1] : nullptr);
    if (status.empty()) continue;
    list += (list.empty() ? "" : ",") + version_json(versions[i], status);
  }
  if (list.empty()) {
    return error_result(!place.problem.empty() && now.entries.empty()
                            ? place.problem
                            : "no snapshot contains " + shown(path));
  }
  const std::string size =
      now.entries.empty() ? "null" : std::to_string(now.entries.front().signature.size);
  const std::string json = "{\"path\":" + bh::json::quoted(path) + ",\"current_size\":" + size +
                           ",\"versions\":[" + list + "]}";
  return tool_kit::text_result(json, json);
}

std::string snapshots_revert(const Call &call) {
  SnapshotStore &store = store_to_change(call);
  const std::string given = call.arguments.text("path");
  const std::string checkpoint = call.arguments.text("checkpoint");
  if (const std::string &p = call.arguments.problem(); !p.empty()) return error_result(p);
  if (given.empty()) return error_result("specify \"path\"; \".\" is the whole workspace");
  // If the path is invalid, returns the error message that the workspace functions provide.
  const std::string path = plain_path(given);
  if (given.front() == '/') return error_result(store.workspace().open(given, 0).problem);
  if (path != ".") {
    const Place place = store.workspace().place(path, false, Links::refuse);
    if (!place.problem.empty() && !place.problem.starts_with("there is no")) {
      return error_result(place.problem);
    }
  }
  std::string problem;
  const auto held = store.lock(call, &problem);
  if (!problem.empty()) return error_result(problem);
  const Outcome<Manifest> snapshot = chosen(store, checkpoint, path);
  if (!snapshot.good()) return error_result(snapshot.problem);
  const Reverted done = revert(call, &store, snapshot.value, path);
  const std::string so_far = " (" + std::to_string(done.restored) + " paths were restored and " +
                             std::to_string(done.deleted) + " deleted before the failure)";
  if (!done.problem.empty()) {
    return error_result(done.problem + (done.restored + done.deleted > 0 ? so_far : ""));
  }
  if (done.restored + done.deleted == 0) {
    if (!holds(snapshot.value, path)) {
      return error_result(shown(path) + " exists neither in the workspace nor in " +
                          checkpoint_name(snapshot.value.head.slot));
    }
    return error_result(
        shown(path) + " is already current" +
        (done.skipped > 0 ? ", except for files whose content is not in the snapshot" : ""));
  }
  return reverted(done, path, snapshot.value);
}

}  // namespace builtin_files
