# The component Host of the package: bulkhead::host, the core as a static library. It needs
# libsodium, POSIX threads and the dynamic linker.
find_dependency(PkgConfig)
pkg_check_modules(BulkheadSodium REQUIRED QUIET IMPORTED_TARGET libsodium)
if(NOT TARGET bulkhead::host)
  add_library(bulkhead::host STATIC IMPORTED)
  set_target_properties(bulkhead::host PROPERTIES
    IMPORTED_LOCATION "${CMAKE_CURRENT_LIST_DIR}/../../libbulkhead.a"
    INTERFACE_COMPILE_FEATURES cxx_std_23
    INTERFACE_LINK_LIBRARIES "bulkhead::sdk;PkgConfig::BulkheadSodium;Threads::Threads;${CMAKE_DL_LIBS}")
endif()
