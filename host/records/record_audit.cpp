// Implements `audit verify`, which verifies the integrity of the session database.
#include <sodium.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <tuple>

#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "plugin/audit_key.hpp"
#include "record-store/verify.hpp"
#include "records/record_files.hpp"
#include "records/sqlite_on_demand.hpp"

namespace bulkhead::program {
namespace {

using record_store::KnownCheckpoint;
using record_store::SegmentFile;
using record_store::VerifyOptions;
using record_store::VerifyReport;
namespace fs = std::filesystem;

constexpr std::int64_t audit_heap_bytes = 512 << 20;

std::string file_text(const std::string &path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// Decodes a public key from 64 hex digits. Returns an empty string if the text is invalid.
std::string key_of(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  std::string out(crypto_sign_PUBLICKEYBYTES, '\0');
  std::size_t n = 0;
  const bool ok = sodium_hex2bin(reinterpret_cast<unsigned char *>(out.data()), out.size(),
                                 text.data(), text.size(), nullptr, &n, nullptr) == 0;
  return ok && n == out.size() && text.size() == 2 * out.size() ? out : std::string();
}

// Returns the checkpoints of a chain that the supervisor has signed.
std::vector<KnownCheckpoint> known_checkpoints(const std::string &state_dir,
                                               const std::string &instance, std::uint32_t chain) {
  std::vector<KnownCheckpoint> out;
  for (SignedPlace &place : signed_places(state_dir, instance)) {
    if (place.chain == chain) out.push_back({place.seq, std::move(place.head), place.unix_s});
  }
  std::sort(out.begin(), out.end(), [](const KnownCheckpoint &a, const KnownCheckpoint &b) {
    return std::tie(a.seq, a.signed_at, a.head) < std::tie(b.seq, b.signed_at, b.head);
  });
  return out;
}

struct Chain {
  std::string name;
  std::vector<SegmentFile> files;
  VerifyOptions options;
};

// Returns the chain to verify if a single file was named on the command line. If the file is in the
// state directory, the supervisor's signatures for its chain are checked as well.
Chain one_file(const RecordFiles::Folder &folder, const std::string &key,
               const std::string &state_dir, const Arguments &arguments) {
  Chain chain;
  const SegmentFile &file = folder.files.front();
  chain.name = file.path;
  chain.files = folder.files;
  chain.options.public_key = key;
  chain.options.instance = arguments.records.instance;
  chain.options.whole_chain = chain.options.to_the_end = false;
  std::error_code ec;
  const fs::path where = fs::canonical(
      fs::path(file.path).parent_path().empty() ? fs::path(".") : fs::path(file.path).parent_path(),
      ec);
  const fs::path own = fs::canonical(state_dir + "/plugins", ec);
  if (ec || file.chain == 0 || where.parent_path() != own) return chain;
  if (chain.options.instance.empty()) chain.options.instance = where.filename().native();
  chain.options.known = known_checkpoints(state_dir, where.filename().native(), file.chain);
  chain.options.to_the_end = true;
  for (const SegmentFile &other : record_store::segment_files(where.native())) {
    if (other.chain == file.chain && other.number > file.number) chain.options.to_the_end = false;
  }
  return chain;
}

std::vector<Chain> chains_of(const RecordFiles &found, const std::string &key) {
  std::vector<Chain> out;
  for (const RecordFiles::Folder &folder : found.folders) {
    for (const SegmentFile &file : folder.files) {
      const bool same = !out.empty() && out.back().files.back().chain == file.chain &&
                        out.back().options.instance == folder.instance;
      if (!same) {
        Chain chain;
        chain.name = folder.path + " chain " + std::to_string(file.chain);
        chain.options.public_key = key;
        chain.options.instance = folder.instance;
        chain.options.known = known_checkpoints(found.state_dir, folder.instance, file.chain);
        out.push_back(std::move(chain));
      }
      out.back().files.push_back(file);
    }
  }
  return out;
}

// Lists the files of a chain again, because a running gateway adds and removes files. Returns true
// if the list has changed; *chain then contains the new list.
bool look_again(Chain *chain, const std::string &state_dir) {
  const std::string folder = fs::path(chain->files.front().path).parent_path().native();
  const std::uint32_t number = chain->files.front().chain;
  std::vector<SegmentFile> now;
  for (SegmentFile &file : record_store::segment_files(folder)) {
    if (file.chain == number) now.push_back(std::move(file));
  }
  const bool same =
      std::equal(now.begin(), now.end(), chain->files.begin(), chain->files.end(),
                 [](const SegmentFile &a, const SegmentFile &b) { return a.number == b.number; });
  if (same || now.empty()) return false;
  chain->options.known = known_checkpoints(state_dir, chain->options.instance, number);
  chain->files = std::move(now);
  return true;
}

VerifyReport verify(Chain *chain, const std::string &state_dir) {
  constexpr int times = 5;
  for (int i = 1;; ++i) {
    VerifyReport report = record_store::verify_chain(chain->files, chain->options);
    const bool one_file = state_dir.empty();
    if (report.broken.empty() || one_file || i == times || !look_again(chain, state_dir)) {
      return report;
    }
  }
}

// Returns the chains whose rows were signed but whose files no longer exist.
std::vector<std::string> vanished(const std::string &state_dir, const std::vector<Chain> &chains) {
  std::vector<std::string> out;
  for (const std::string &instance : signed_instances(state_dir)) {
    std::map<std::uint32_t, std::uint64_t> last;
    for (const SignedPlace &place : signed_places(state_dir, instance)) {
      last[place.chain] = std::max(last[place.chain], place.seq);
    }
    for (const auto &[chain, seq] : last) {
      const bool there =
          std::any_of(chains.begin(), chains.end(), [&, number = chain](const Chain &one) {
            return one.options.instance == instance && one.files.back().chain == number;
          });
      if (there) continue;
      out.push_back(
          state_dir + "/plugins/" + instance + " chain " + std::to_string(chain) +
          ": BROKEN\n  all its files are missing, but the supervisor signed rows up to seq " +
          std::to_string(seq));
    }
  }
  return out;
}

// A chain without errors may still not prove integrity. Returns the reason, or an empty string if
// there is none.
std::string unproven(const Chain &chain, const VerifyReport &report, std::uint64_t most) {
  if (!report.broken.empty() || chain.options.public_key.empty() || report.rows == 0) return {};
  if (report.checkpoints == 0 && chain.options.known.empty() && !chain.options.whole_chain) {
    return "none of its rows are signed, so their origin cannot be verified";
  }
  if (report.unsigned_rows <= most) return {};
  return "the last " + std::to_string(report.unsigned_rows) +
         " rows are not signed, more than --max-unsigned " + std::to_string(most) +
         ", so their origin cannot be verified";
}

std::string as_text(const Chain &chain, const VerifyReport &report, const std::string &why_not) {
  std::string out;
  if (!why_not.empty()) {
    out = chain.name + ": NOT PROVEN\n  " + why_not;
  } else if (report.broken.empty()) {
    out =
        chain.name + ": intact. " + counted(report.rows, "row") + " in " +
        counted(report.files, "file") + ", " +
        (chain.options.public_key.empty()
             ? counted(report.checkpoints, "checkpoint") + ", not checked"
             : counted(report.checkpoints, "signed checkpoint")) +
        (chain.options.whole_chain || report.instance.empty() ? ""
                                                              : " of \"" + report.instance + "\"");
    if (report.unsigned_rows > 0) {
      out += "; the last " + std::to_string(report.unsigned_rows) + " rows are not signed yet";
    }
  } else {
    out = chain.name + ": BROKEN\n  " + report.broken;
  }
  for (const std::string &note : report.notes) out += "\n  note: " + note;
  return printable(out, true) + "\n";
}

std::string as_json(const Chain &chain, const VerifyReport &report, const std::string &why_not) {
  std::string out = "{";
  const auto add = [&out](std::string_view name, const auto &value) {
    bh::json::append_member(&out, name, value);
  };
  add("chain", chain.name);
  add("whole", report.broken.empty());
  add("broken", report.broken);
  add("unproven", why_not);
  add("rows", report.rows);
  add("files", report.files);
  add("first_seq", report.first_seq);
  add("checkpoints", report.checkpoints);
  add("unsigned_rows", report.unsigned_rows);
  add("signatures_checked", !chain.options.public_key.empty());
  add("notes", report.notes);
  return out + '}';
}

// Returns the trusted public key, or an empty string if there is none.
Result<std::string> public_key(const Arguments &arguments, const std::string &state_dir) {
  const std::string &wanted = arguments.records.key;
  if (wanted.empty()) {
    return state_dir.empty() ? std::string()
                             : key_of(file_text(state_dir + "/audit/supervisor/public-key"));
  }
  std::string key = key_of(wanted);
  if (key.empty()) key = key_of(file_text(wanted));
  if (!key.empty()) return key;
  return fail(BH_E_INVALID,
              "--key " + wanted + " is neither 64 hex digits nor a file that contains them");
}

}  // namespace

int run_audit_verify(const Arguments &arguments) {
  const auto found = look_for_records(arguments);
  if (!found) return complain(found.error().text);
  if (const auto library = load_sqlite(); !library) return complain(library.error().text);
  sqlite3_hard_heap_limit64(audit_heap_bytes);
  const bool named = found->state_dir.empty();
  std::string state_dir = found->state_dir;
  if (named) {
    // The file usually comes from this machine, so the profile's state directory is used.
    Arguments all = arguments;
    all.records.file.clear();
    if (const auto own = look_for_records(all)) state_dir = own->state_dir;
  }
  const auto key = public_key(arguments, state_dir);
  if (!key) return complain(key.error().text);
  std::vector<Chain> chains =
      named ? std::vector{one_file(found->folders.front(), *key, state_dir, arguments)}
            : chains_of(*found, *key);
  bool whole = true, any_signed = !named && !signed_instances(state_dir).empty();
  std::string text, json;
  for (Chain &chain : chains) {
    const VerifyReport report = verify(&chain, found->state_dir);
    const std::string why_not = unproven(chain, report, arguments.records.max_unsigned);
    whole = whole && report.broken.empty() && why_not.empty();
    any_signed = any_signed || report.checkpoints > 0 || !report.broken.empty();
    text += as_text(chain, report, why_not);
    json += (json.empty() ? "" : ",\n") + as_json(chain, report, why_not);
  }
  if (!named) {
    for (const std::string &gone : vanished(state_dir, chains)) {
      whole = false;
      text += printable(gone, true) + "\n";
      json += json.empty() ? "{" : ",\n{";
      bh::json::append_member(&json, "chain", gone.substr(0, gone.find(": BROKEN")));
      bh::json::append_member(&json, "whole", false);
      bh::json::append_member(&json, "broken", gone.substr(gone.find("\n  ") + 3));
      json += "}";
    }
  }
  if (chains.empty() && whole) return complain(found->none);
  const bool written = write_stdout(arguments.json ? "[" + json + "]\n" : text);
  if (key->empty() && !any_signed && !named) {
    return complain(
        "nothing has been signed yet, so the origin of the rows cannot be verified; the gateway "
        "signs after checkpoint_rows rows, after a minute and when it stops");
  }
  if (key->empty()) {
    return complain(
        "no public key was found, so signatures were not checked; specify it with --key (the "
        "gateway "
        "stores it in audit/supervisor/public-key in its state_dir)");
  }
  return written && whole ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
