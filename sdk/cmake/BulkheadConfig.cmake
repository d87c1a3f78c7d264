# Used by find_package(Bulkhead 0.1 REQUIRED). Provides the target bulkhead::sdk and the function
# bh_add_plugin(). With COMPONENTS Aggregator, also provides bulkhead::aggregator, a client library
# for `bulkhead aggregator`.
include("${CMAKE_CURRENT_LIST_DIR}/BulkheadTargets.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/BulkheadPlugin.cmake")
foreach(component IN LISTS Bulkhead_FIND_COMPONENTS)
  if(EXISTS "${CMAKE_CURRENT_LIST_DIR}/Bulkhead${component}Targets.cmake")
    include(CMakeFindDependencyMacro)
    find_dependency(Threads)
    include("${CMAKE_CURRENT_LIST_DIR}/Bulkhead${component}Targets.cmake")
    set(Bulkhead_${component}_FOUND TRUE)
  elseif(Bulkhead_FIND_REQUIRED_${component})
    set(Bulkhead_FOUND FALSE)
    set(Bulkhead_NOT_FOUND_MESSAGE "Bulkhead has no component ${component} here")
  endif()
endforeach()
