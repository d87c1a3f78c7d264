// audit verify: is the record what was written?
#include <sodium.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>
#include <tuple>

#include "commands.hpp"
#include "console.hpp"
#include "mcp/scan.hpp"
#include "record-store/verify.hpp"
#include "record_files.hpp"
#include "text.hpp"

namespace bulkhead::program {
namespace {

using record_store::KnownCheckpoint;
using record_store::SegmentFile;
using record_store::VerifyOptions;
using record_store::VerifyReport;

std::string file_text(const std::string &path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

// 64 hex digits become 32 bytes; empty: they are not.
std::string key_of(std::string_view text) {
  text = text.substr(0, text.find_last_not_of(" \t\r\n") + 1);
  std::string out(crypto_sign_PUBLICKEYBYTES, '\0');
  std::size_t n = 0;
  const bool ok = sodium_hex2bin(reinterpret_cast<unsigned char *>(out.data()), out.size(),
                                 text.data(), text.size(), nullptr, &n, nullptr) == 0;
  return ok && n == out.size() && text.size() == 2 * out.size() ? out : std::string();
}

// Lines "TIME INSTANCE chain C seq S head H" of what the supervisor has signed, for one chain.
std::vector<KnownCheckpoint> known_checkpoints(const std::string &state_dir,
                                               const std::string &instance, std::uint32_t chain) {
  std::vector<KnownCheckpoint> out;
  for (const char *name : {"/audit/supervisor/signed.1", "/audit/supervisor/signed"}) {
    std::istringstream lines(file_text(state_dir + name));
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      KnownCheckpoint one;
      std::string of, text_chain, text_seq, text_head;
      std::uint32_t number = 0;
      if (words >> one.signed_at >> of >> text_chain >> number >> text_seq >> one.seq >>
              text_head >> one.head &&
          of == instance && text_chain == "chain" && number == chain) {
        out.push_back(std::move(one));
      }
    }
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

std::vector<Chain> chains_of(const RecordFiles &found, const std::string &key) {
  std::vector<Chain> out;
  for (const RecordFiles::Folder &folder : found.folders) {
    for (const SegmentFile &file : folder.files) {
      const bool same = !out.empty() && out.back().files.back().chain == file.chain &&
                        out.back().files.back().path.starts_with(folder.path + "/");
      if (!same) {
        Chain chain;
        chain.name = found.state_dir.empty() ? file.path
                                             : folder.path + " chain " + std::to_string(file.chain);
        chain.options.public_key = key;
        chain.options.whole_chain = !found.state_dir.empty();
        if (chain.options.whole_chain) {
          chain.options.known = known_checkpoints(found.state_dir, folder.instance, file.chain);
        }
        out.push_back(std::move(chain));
      }
      out.back().files.push_back(file);
    }
  }
  return out;
}

std::string as_text(const Chain &chain, const VerifyReport &report) {
  std::string out;
  if (report.broken.empty()) {
    out = chain.name + ": whole. " + std::to_string(report.rows) + " rows in " +
          std::to_string(report.files) + (report.files == 1 ? " file, " : " files, ") +
          std::to_string(report.checkpoints) +
          (chain.options.public_key.empty() ? " checkpoints, not checked" : " signed checkpoints");
    if (report.unsigned_rows > 0) {
      out += "; the last " + std::to_string(report.unsigned_rows) + " rows are not signed yet";
    }
  } else {
    out = chain.name + ": BROKEN\n  " + report.broken;
  }
  for (const std::string &note : report.notes) out += "\n  note: " + note;
  return printable(out, true) + "\n";
}

std::string as_json(const Chain &chain, const VerifyReport &report) {
  std::string out = "{\"chain\":";
  mcp::append_quoted(&out, chain.name);
  out += std::string(",\"whole\":") + (report.broken.empty() ? "true" : "false");
  out += ",\"broken\":";
  mcp::append_quoted(&out, report.broken);
  const auto number = [&](const char *name, std::uint64_t value) {
    out += std::string(",\"") + name + "\":" + std::to_string(value);
  };
  number("rows", report.rows);
  number("files", report.files);
  number("first_seq", report.first_seq);
  number("checkpoints", report.checkpoints);
  number("unsigned_rows", report.unsigned_rows);
  out += std::string(",\"signatures_checked\":") +
         (chain.options.public_key.empty() ? "false" : "true") + ",\"notes\":[";
  for (const std::string &note : report.notes) {
    if (!out.ends_with('[')) out += ',';
    mcp::append_quoted(&out, note);
  }
  return out + "]}";
}

// The key that is to be trusted; empty with no error: there is none.
Result<std::string> public_key(const Arguments &arguments, const std::string &state_dir) {
  const std::string &wanted = arguments.records.key;
  if (wanted.empty()) {
    return state_dir.empty() ? std::string()
                             : key_of(file_text(state_dir + "/audit/supervisor/public-key"));
  }
  std::string key = key_of(wanted);
  if (key.empty()) key = key_of(file_text(wanted));
  if (!key.empty()) return key;
  return fail(BH_E_INVALID, "--key " + wanted + " is neither 64 hex digits nor a file with them");
}

}  // namespace

int run_audit_verify(const Arguments &arguments) {
  const auto found = find_records(arguments);
  if (!found) return complain(found.error().text);
  std::string state_dir = found->state_dir;
  if (state_dir.empty() && arguments.records.key.empty()) {
    // A file that was named is usually one of this machine's.
    Arguments all = arguments;
    all.records.file.clear();
    if (const auto own = find_records(all)) state_dir = own->state_dir;
  }
  const auto key = public_key(arguments, state_dir);
  if (!key) return complain(key.error().text);
  bool whole = true;
  std::string text, json;
  for (const Chain &chain : chains_of(*found, *key)) {
    const VerifyReport report = record_store::verify_chain(chain.files, chain.options);
    whole = whole && report.broken.empty();
    text += as_text(chain, report);
    json += (json.empty() ? "" : ",\n") + as_json(chain, report);
  }
  const bool written = write_stdout(arguments.json ? "[" + json + "]\n" : text);
  if (key->empty()) {
    return complain(
        "no public key is known, so signatures were not checked; --key names one (it is in "
        "audit/supervisor/public-key of the state_dir that the gateway had)");
  }
  return written && whole ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
