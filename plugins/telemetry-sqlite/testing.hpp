// Helpers for the telemetry-sqlite tests: a temporary folder, rows, a signer and verification.
#pragma once

// ThreadSanitizer does not support starting threads after fork().
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BH_NO_THREADS_AFTER_FORK
#endif
#elif defined(__SANITIZE_THREAD__)
#define BH_NO_THREADS_AFTER_FORK
#endif

#include <catch2/catch.hpp>

#include <sodium.h>
#include <stdlib.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "record-store/schema.hpp"
#include "record-store/verify.hpp"
#include "telemetry-sqlite/row.hpp"
#include "telemetry-sqlite/store.hpp"

namespace telemetry_sqlite::testing {

struct Folder {
  std::string path;
  Folder() {
    std::string name = std::filesystem::temp_directory_path() / "telemetry-sqlite-XXXXXX";
    path = ::mkdtemp(name.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  std::string operator/(const std::string &name) const { return path + "/" + name; }
};

struct Signer {
  unsigned char key[crypto_sign_PUBLICKEYBYTES], secret[crypto_sign_SECRETKEYBYTES];
  bool answers = true;
  int asked = 0;
  Signer() { crypto_sign_keypair(key, secret); }
  std::string public_key() const { return {reinterpret_cast<const char *>(key), sizeof key}; }
  Store::Sign function() {
    return [this](const std::string &statement, bh_signature *out) {
      ++asked;
      if (!answers) return false;
      out->unix_s = 5;
      std::memcpy(out->public_key, key, sizeof key);
      const std::string message = record_store::signed_message("book", 5, statement);
      crypto_sign_detached(out->signature, nullptr,
                           reinterpret_cast<const unsigned char *>(message.data()), message.size(),
                           secret);
      return true;
    };
  }
};

inline Row row(std::uint64_t number) {
  Row out;
  out.outcome = 1;
  out.number = number;
  out.start_unix_ns = 1'790'000'000'000'000'000u + number * 1'000'000u;
  out.duration_ns = 1'500'000;
  out.method = "tools/call";
  out.server = "local";
  out.name = "tool";
  out.request_id = std::to_string(number);
  out.request = R"({"name":"local__tool","arguments":{"n":)" + std::to_string(number) + "}}";
  out.response = R"({"content":[]})";
  out.params_bytes = out.request.size();
  out.result_bytes = out.response.size();
  return out;
}

inline std::string one(const std::string &path, const std::string &sql) {
  record_store::Database db;
  REQUIRE(db.open(path, SQLITE_OPEN_READONLY) == SQLITE_OK);
  record_store::Statement rows;
  INFO(sql);
  REQUIRE(rows.prepare(db.get(), sql) == SQLITE_OK);
  REQUIRE(rows.step() == SQLITE_ROW);
  return std::string(rows.text(0));
}

inline record_store::VerifyReport verify(const Folder &folder, const Signer *signer = nullptr) {
  record_store::VerifyOptions options;
  if (signer != nullptr) options.public_key = signer->public_key();
  return record_store::verify_chain(record_store::segment_files(folder.path), options);
}

}  // namespace telemetry_sqlite::testing
