# bh_add_plugin(NAME source... [PROVIDES id...] [DESCRIPTION text] [VERSION v] [LIBS target...])
#
# Makes the library NAME.so, which exports bh_plugin_entry_v0 and nothing else, and its manifest
# NAME.plugin.toml beside it. With BULKHEAD_PLUGIN_DIR set, both go there.


function(bh_add_plugin name)
  cmake_parse_arguments(arg "" "DESCRIPTION;VERSION" "PROVIDES;LIBS" ${ARGN})
  if(NOT arg_VERSION)
    set(arg_VERSION "${PROJECT_VERSION}")
  endif()
  if(NOT arg_PROVIDES)
    message(FATAL_ERROR "bh_add_plugin(${name}): PROVIDES is missing, e.g. PROVIDES bh.tools/1")
  endif()
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE bulkhead::sdk ${arg_LIBS})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so"
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${name} PRIVATE -fno-gnu-unique)
  endif()
  # A sanitizer's runtime lives in the program, so its symbols are undefined here.
  if(NOT BULKHEAD_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  target_link_options(${name} PRIVATE "-Wl,--version-script=${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map"
    -Wl,--exclude-libs,ALL -Wl,-z,now)
  if(BULKHEAD_PLUGIN_DIR)
    set(dir "${BULKHEAD_PLUGIN_DIR}")
  else()
    set(dir "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${dir}")
  list(TRANSFORM arg_PROVIDES REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE ids)
  list(JOIN ids ", " ids)
  file(WRITE "${dir}/${name}.plugin.toml"
    "id = \"${name}\"\nversion = \"${arg_VERSION}\"\ndescription = \"${arg_DESCRIPTION}\"\n"
    "abi_major = 0\nabi_minor_needed = 0\nprovides = [${ids}]\n")
endfunction()
