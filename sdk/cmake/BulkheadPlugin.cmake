# bh_add_plugin(NAME source... PROVIDES id... [DESCRIPTION text] [VERSION v] [LIBS target...]
#               [EXCLUSIVE] [INSTALL])
#
# Builds a plugin: the library NAME.so, which exports only bh_plugin_entry_v1, and its manifest
# NAME.plugin.toml in the same folder. NAME must be the ID in the plugin's descriptor.
#
# EXCLUSIVE: the plugin uses a file, port or database that only one process can use at a time. A
# reload then stops the old process before it starts the new one.
#
# Both files are written to the current binary folder, or to BULKHEAD_PLUGIN_DIR if it is set.
# INSTALL (or BULKHEAD_INSTALL_PLUGINS set in the folder) adds install rules for
# lib/bulkhead/plugins.

function(bh_add_plugin name)
  cmake_parse_arguments(arg "EXCLUSIVE;INSTALL" "DESCRIPTION;VERSION" "PROVIDES;LIBS" ${ARGN})
  if(NOT name MATCHES "^[a-z0-9-]+$")
    message(FATAL_ERROR "bh_add_plugin(${name}): a plugin's name consists of a-z, 0-9 and '-'")
  endif()
  if(NOT arg_PROVIDES)
    message(FATAL_ERROR "bh_add_plugin(${name}): PROVIDES is missing, e.g. PROVIDES bh.tools/1")
  endif()
  if(NOT arg_VERSION)
    set(arg_VERSION "${PROJECT_VERSION}")
  endif()
  add_library(${name} MODULE ${arg_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PRIVATE bulkhead::sdk ${arg_LIBS})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden C_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Without this option, a static local variable of an inline function is STB_GNU_UNIQUE: it would
    # keep the library mapped and survive its reload.
    target_compile_options(${name} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-gnu-unique>)
  endif()
  # With sanitizers, symbols are undefined here because the sanitizer runtime is in the main
  # program.
  if(NOT BULKHEAD_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  set(map "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/plugin.map")
  target_link_options(${name} PRIVATE "-Wl,--version-script=${map}" -Wl,--exclude-libs,ALL
    -Wl,-z,now -Wl,-z,relro -Wl,-z,noexecstack)
  set_target_properties(${name} PROPERTIES LINK_DEPENDS "${map}")
  if(BULKHEAD_PLUGIN_DIR)
    set(dir "${BULKHEAD_PLUGIN_DIR}")
  else()
    set(dir "${CMAKE_CURRENT_BINARY_DIR}")
  endif()
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${dir}")
  list(TRANSFORM arg_PROVIDES REPLACE "(.+)" "\"\\1\"" OUTPUT_VARIABLE ids)
  list(JOIN ids ", " ids)
  set(exclusive "")
  if(arg_EXCLUSIVE)
    set(exclusive "exclusive = true\n")
  endif()
  file(CONFIGURE OUTPUT "${dir}/${name}.plugin.toml" @ONLY CONTENT
"id = \"${name}\"
version = \"${arg_VERSION}\"
description = \"${arg_DESCRIPTION}\"
abi_major = 1
abi_minor_needed = 0
provides = [${ids}]
${exclusive}")
  if(arg_INSTALL OR BULKHEAD_INSTALL_PLUGINS)
    include(GNUInstallDirs)
    install(TARGETS ${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/bulkhead/plugins"
      COMPONENT plugins)
    install(FILES "${dir}/${name}.plugin.toml"
      DESTINATION "${CMAKE_INSTALL_LIBDIR}/bulkhead/plugins" COMPONENT plugins)
  endif()
endfunction()
