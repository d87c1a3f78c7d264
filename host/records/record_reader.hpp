// Reads several files of the session database as if they were one database. The connection is
// read-only, and SQLite's authorizer rejects every statement that does anything other than read.
//
// Used on one thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "record-store/database.hpp"
#include "record-store/files.hpp"

namespace bulkhead::program {

class RecordReader {
 public:
  static constexpr std::size_t max_files = 11;  // SQLite can attach ten files to the first
  static constexpr std::uint64_t max_rows = 10'000;
  static constexpr std::size_t max_answer_bytes = 64u << 20;
  static constexpr std::uint64_t max_ms = 5'000;

  // Removes the files that cannot be read together with others. Damaged files and files with an
  // unsupported schema version are added to *left_out as "PATH: reason". Files that are incomplete
  // or have just been removed are not reported. If there is only one file, it is never removed, so
  // that the error message can name it.
  static std::vector<record_store::SegmentFile> usable(std::vector<record_store::SegmentFile> files,
                                                       std::vector<std::string> *left_out);

  // Opens the first max_files usable files. `all` must be ordered from newest to oldest.
  static Result<RecordReader> open(const std::vector<record_store::SegmentFile> &all);

  struct Answer {
    std::vector<std::string> columns;
    std::uint64_t rows = 0;
    bool cut = false;  // there are more than max_rows rows or max_answer_bytes bytes
  };
  // Runs one query and calls `row` for each row of its result. Returns an error if `sql` is not
  // exactly one query, if the query is invalid, or if it takes longer than max_ms.
  Result<Answer> run(std::string_view sql,
                     const std::function<void(const Answer &, sqlite3_stmt *)> &row);

  std::size_t files() const noexcept { return files_; }
  std::size_t usable_files() const noexcept { return usable_; }
  const std::vector<std::string> &left_out() const noexcept { return left_out_; }

 private:
  RecordReader() = default;
  Result<void> attach(const std::vector<record_store::SegmentFile> &files);

  record_store::Database db_;
  std::size_t files_ = 0, usable_ = 0;
  std::vector<std::string> left_out_;
};

// Appends a value as JSON. Blobs are converted to hex.
void append_json_value(std::string *out, sqlite3_stmt *row, int column);
std::string text_value(sqlite3_stmt *row, int column);
std::string sql_quoted(std::string_view text);

}  // namespace bulkhead::program
