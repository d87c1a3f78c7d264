// Finds the files of the session database.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "command_line/arguments.hpp"
#include "profile/profile.hpp"
#include "record-store/files.hpp"
#include "records/record_reader.hpp"

namespace bulkhead::program {

struct RecordFiles {
  std::string state_dir;  // empty if the command names a file
  // The directory of one telemetry instance. Its files are ordered by chain and number.
  struct Folder {
    std::string path, instance;
    std::vector<record_store::SegmentFile> files;
  };
  std::vector<Folder> folders;
  Naming naming;                     // of the profile; the default if the command names a file
  std::vector<std::string> servers;  // the profile's servers and tools plugins
  std::string none;                  // why there are no files; empty if there are any

  // Returns all files, with the most recently written files first.
  std::vector<record_store::SegmentFile> newest_first() const;
};

// Returns the file that was named on the command line, or all files in the profile's state
// directory. Returns an error if there are none.
Result<RecordFiles> find_records(const Arguments &arguments);
// Like find_records(), but does not return an error if there are no files.
Result<RecordFiles> look_for_records(const Arguments &arguments);

// Prints to standard error which files were not read; see RecordReader::usable().
void note_left_out(const std::vector<std::string> &files);
// Prints to standard error which files this reader has not read.
void note_unread(const RecordReader &reader);

}  // namespace bulkhead::program
