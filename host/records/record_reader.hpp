// Reads files of the session database as one: a read-only connection on which SQLite's authorizer
// lets nothing pass but reading.
//
// Thread: one.
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
  static constexpr std::size_t max_files = 11;  // that are read as one: SQLite attaches ten
  static constexpr std::uint64_t max_rows = 10'000;
  static constexpr std::size_t max_answer_bytes = 64u << 20;
  static constexpr std::uint64_t max_ms = 5'000;

  // Without those that cannot be read together with others, since they are damaged or of another
  // version ("PATH: why" into *left_out), and without those whose making was cut off or that are
  // gone since they were listed. One alone is always usable, so that it is named.
  static std::vector<record_store::SegmentFile> usable(std::vector<record_store::SegmentFile> files,
                                                       std::vector<std::string> *left_out);

  // The first max_files of those that can be read as one; newest first. An error is a line for
  // people.
  static Result<RecordReader> open(const std::vector<record_store::SegmentFile> &all);

  struct Answer {
    std::vector<std::string> columns;
    std::uint64_t rows = 0;
    bool cut = false;  // there are more rows than max_rows, or than max_answer_bytes
  };
  // Runs one statement; `row` gets each of its rows, of as many columns as the answer has. An error
  // is a line for people: not a query, an SQL mistake, or the time is over.
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

// A value as JSON: blobs as hex digits.
void append_json_value(std::string *out, sqlite3_stmt *row, int column);
std::string text_value(sqlite3_stmt *row, int column);

}  // namespace bulkhead::program
