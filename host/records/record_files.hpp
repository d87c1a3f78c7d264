// Where the session database of a profile is.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "command_line/arguments.hpp"
#include "record-store/files.hpp"

namespace bulkhead::program {

struct RecordFiles {
  std::string state_dir;  // empty: a file was named
  // Each telemetry instance's folder that has any, with its files: by chain, then number.
  struct Folder {
    std::string path, instance;
    std::vector<record_store::SegmentFile> files;
  };
  std::vector<Folder> folders;
  std::string none;  // where there are none: a line for people

  // All files, the one that was written last first.
  std::vector<record_store::SegmentFile> newest_first() const;
};

// The file that was named, or all below the profile's state_dir. An error is a line for people; it
// is one when there are none.
Result<RecordFiles> find_records(const Arguments &arguments);
// The same, and no error when there are none.
Result<RecordFiles> look_for_records(const Arguments &arguments);

// Says on stderr which files were not read; see RecordReader::usable().
void note_left_out(const std::vector<std::string> &files);

}  // namespace bulkhead::program
