# The package component Host: the core as one static library with one header, for
# find_package(Bulkhead COMPONENTS Host).
set(host_header "${CMAKE_BINARY_DIR}/include/bulkhead/host.hpp")
file(GLOB_RECURSE core_headers CONFIGURE_DEPENDS "${CMAKE_SOURCE_DIR}/core/*.hpp")
add_custom_command(OUTPUT "${host_header}"
  COMMAND "${CMAKE_COMMAND}" -D "FOLDER=${CMAKE_SOURCE_DIR}/core" -D HEADER=host.hpp -D "OUT=${host_header}"
          -P "${CMAKE_SOURCE_DIR}/cmake/single_header.cmake"
  DEPENDS ${core_headers} "${CMAKE_SOURCE_DIR}/cmake/single_header.cmake" VERBATIM)

add_custom_target(bulkhead_host_header ALL DEPENDS "${host_header}")

# The objects of all static libraries that the library `bulkhead` needs.
set(objects)
foreach(part bulkhead bulkhead_layers bulkhead_formats bulkhead_corporation bulkhead_route bulkhead_catalog
    bulkhead_link bulkhead_mcp bulkhead_mcp_values bulkhead_plugin_base bulkhead_plugin bulkhead_profile
    bulkhead_sandbox bulkhead_signing bulkhead_reactor)
  list(APPEND objects "$<TARGET_OBJECTS:${part}>")
endforeach()
add_library(bulkhead_host_library STATIC ${objects})
set_target_properties(bulkhead_host_library PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME bulkhead
  ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
add_dependencies(bulkhead_host_library bulkhead_host_header)
add_custom_command(TARGET bulkhead_host_library POST_BUILD
  COMMAND "${CMAKE_STRIP}" --strip-debug "$<TARGET_FILE:bulkhead_host_library>" VERBATIM)

# The same target in this tree.
add_library(bulkhead_host INTERFACE)
add_library(bulkhead::host ALIAS bulkhead_host)
add_dependencies(bulkhead_host bulkhead_host_header)
target_include_directories(bulkhead_host INTERFACE "${CMAKE_BINARY_DIR}/include")
target_link_libraries(bulkhead_host INTERFACE bulkhead)

install(FILES "$<TARGET_FILE:bulkhead_host_library>" DESTINATION "${CMAKE_INSTALL_LIBDIR}" COMPONENT host)
install(FILES "${host_header}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/bulkhead" COMPONENT host)
install(FILES "${CMAKE_CURRENT_LIST_DIR}/BulkheadHostTargets.cmake"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Bulkhead" COMPONENT host)
