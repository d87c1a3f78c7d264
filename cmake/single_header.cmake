# Writes a header with the text of all headers that it includes from a folder:
#   cmake -D FOLDER=core -D HEADER=host.hpp -D OUT=bulkhead/host.hpp -P single_header.cmake
# Other includes remain. The file is not touched if its text has not changed.

cmake_minimum_required(VERSION 3.25)

# Sets *out to the text of a header. Each header is included once.
function(read_header name out)
  file(READ "${FOLDER}/${name}" text)
  string(REPLACE "#pragma once\n" "" text "${text}")
  while(text MATCHES "#include \"([a-z0-9_]+(/[a-z0-9_]+)*\\.hpp)\"\n")
    set(included "${CMAKE_MATCH_1}")
    set(part "")
    get_property(names GLOBAL PROPERTY header_names)
    if(NOT included IN_LIST names)
      set_property(GLOBAL APPEND PROPERTY header_names "${included}")
      read_header("${included}" part)
    endif()
    string(REPLACE "#include \"${included}\"\n" "${part}" text "${text}")
  endwhile()
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

read_header("${HEADER}" text)
file(CONFIGURE OUTPUT "${OUT}" @ONLY NEWLINE_STYLE LF CONTENT
  "// Generated from ${HEADER} and the headers that it includes. See docs/plugins.md, \"Embed the host\".\n#pragma once\n\n@text@")
