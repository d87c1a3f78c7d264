// Finds the session database files of a profile.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "command_line/arguments.hpp"
#include "record-store/files.hpp"

namespace bulkhead::program {

struct RecordFiles {
  std::string state_dir;  // empty if the command names a file
  // The folder of one telemetry instance. Its files are ordered by chain and number.
  struct Folder {
    std::string path, instance;
    std::vector<record_store::SegmentFile> files;
  };
  std::vector<Folder> folders;
  std::string none;  // the reason why there are no files

  // Returns all files, the most recently written first.
  std::vector<record_store::SegmentFile> newest_first() const;
};

// Returns the file that the command names, or all files below the profile's state_dir. Returns an
// error if there are none.
Result<RecordFiles> find_records(const Arguments &arguments);
// Like find_records(), but missing files are not an error.
Result<RecordFiles> look_for_records(const Arguments &arguments);

// Reports on standard error which files were not read; see RecordReader::usable().
void note_left_out(const std::vector<std::string> &files);

}  // namespace bulkhead::program
