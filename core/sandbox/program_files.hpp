// Recognizes program files and finds the folders that they need. Thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sandbox/home_folders.hpp"

namespace bulkhead {

// A server may read a script or an executable but not change it. An `executable` is recognized by
// its mode and its first bytes, both of which a server can change in a file that it may write.
enum class FileKind : std::uint8_t { data, script, executable };

// Returns the kind of a file: a script has a name such as "server.js". The mode alone is not
// sufficient, because on some file systems (vfat, NTFS, the Windows drives of WSL), every file is
// executable.
FileKind kind_of_file(const std::string &path);

// Returns the folder that a program file needs at run time: its package, including the modules that
// it imports. The search for the package stops at the home directories and at the folder `limit`,
// which must contain the file. If `limit` is empty, only the home directories stop the search.
std::string code_root(const std::string &file, const std::vector<std::string> &homes,
                      const std::string &limit = {});

struct ProgramFolder {
  std::string shown;   // the folder to make visible; empty: only the file
  std::string wanted;  // the folder that the program may need; empty: no more than is shown
};

// Determines the folder that is made visible with a program file. It never contains a home
// directory or a hidden path, and is not in a hidden path, except that a package in a hidden folder
// is shown if the file is `certainly` a program. If servers can change the folder `changeable`,
// which contains the file, they cannot enlarge the visible part beyond it by removing the files
// that mark a package.
ProgramFolder folder_of_program(const std::string &file, bool certainly, const HomeFolders &homes,
                                const std::set<std::string> &hidden, const std::string &changeable);

}  // namespace bulkhead
