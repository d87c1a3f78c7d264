// Texts for the operator about a planned view (child_view.hpp).
#pragma once

#include <cstddef>
#include <string>

namespace bulkhead {

inline constexpr const char *shared_because =
    " is shared with other programs or contains paths that are hidden from servers; ";

// The reason why a path is not granted, or why a server must not start.
inline std::string unresolved(const std::string &path) {
  return "it is not known where " + path +
         " leads, because there are too many folders or symbolic links on the way, or because of a "
         "lack of file descriptors or memory; remove the links";
}

// `shown` is the part of the folder `wanted` that is visible with a program.
inline std::string note_of_program(const std::string &wanted, const std::string &shown) {
  return "its program may need the folder " + wanted + ", but it can read only " + shown +
         ", because the folder contains or is in a path that is hidden from servers, or servers "
         "can change a part of it; if the program needs more, name the files and folders in "
         "sandbox_paths.read";
}

inline std::string note_of_system_home(const std::string &home) {
  return "the home directory " + home +
         " is a system folder, so credentials that are created in it later are visible until the "
         "next start; set HOME to a separate folder";
}

inline std::string note_of_home(const std::string &home, bool link) {
  return "its HOME " + home + " is not treated as a home directory, because " +
         (link ? "a server can change a symbolic link in this path"
               : "it is, contains, or is in a path that is hidden from servers") +
         "; set HOME to a separate folder";
}

inline std::string note_of_replacements(const std::string &folder, const std::string &file) {
  return "it can change the folder " + folder + ", which contains the gateway's file " + file +
         "; if another program replaces that file, the server can read and change the new one "
         "until it restarts; move the gateway's file";
}

inline std::string note_of_entries(const std::string &folder, std::size_t most,
                                   std::size_t left_out) {
  return folder + " has more than " + std::to_string(most) + " entries; " +
         std::to_string(left_out) +
         " are not visible to the server (add those that it needs to sandbox_paths)";
}

}  // namespace bulkhead
