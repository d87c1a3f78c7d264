# find_package(Bulkhead 0.1 REQUIRED) gives the target bulkhead::sdk and the function
# bh_add_plugin().
include("${CMAKE_CURRENT_LIST_DIR}/BulkheadTargets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/BulkheadPlugin.cmake")
