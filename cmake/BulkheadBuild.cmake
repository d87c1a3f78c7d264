# Sets the compiler flags of this repository, and defines functions that add tests and fuzzers.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(BULKHEAD_PLUGIN_DIR "${CMAKE_BINARY_DIR}/lib/bulkhead/plugins")
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_C_FLAGS_RELEASE "-O2 -g1")
# Several files are compiled as one unit, because parsing the standard library's headers takes half
# of the compile time of a file. Names in anonymous namespaces must therefore be unique within a
# library.
set(CMAKE_UNITY_BUILD ${BULKHEAD_JUMBO})
set(CMAKE_UNITY_BUILD_BATCH_SIZE 12 CACHE STRING "Files per unit; 0: all of a library")
include(GNUInstallDirs)
include(CheckIPOSupported)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${CCACHE}")
endif()

add_library(bulkhead_flags INTERFACE)
target_compile_options(bulkhead_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -fvisibility=hidden
  $<$<COMPILE_LANGUAGE:CXX>:-fvisibility-inlines-hidden -Wnon-virtual-dtor>
  -fstack-protector-strong -fstack-clash-protection -fcf-protection)
target_compile_definitions(bulkhead_flags INTERFACE BOOST_DLL_USE_STD_FS BOOST_ALL_NO_LIB)
target_link_options(bulkhead_flags INTERFACE -Wl,-z,relro,-z,now)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  if(BULKHEAD_JUMBO)
    target_compile_options(bulkhead_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
  # By default, a static local variable of an inline function (STB_GNU_UNIQUE) prevents its library
  # from being unloaded, and a replacement of the library would share the variable.
  target_compile_options(bulkhead_flags INTERFACE -fno-gnu-unique)
endif()
if(BULKHEAD_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)  # all code guides the fuzzers
endif()
if(BULKHEAD_SANITIZE)
  # pointer-overflow is off because RapidJSON adds an offset to a null pointer in almost every
  # parse.
  add_compile_options(-fsanitize=${BULKHEAD_SANITIZE} -fno-omit-frame-pointer)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang" AND BULKHEAD_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=pointer-overflow -fno-sanitize-recover=undefined)
  endif()
  add_link_options(-fsanitize=${BULKHEAD_SANITIZE})
else()
  target_compile_definitions(bulkhead_flags INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
endif()

if(BULKHEAD_TESTS)
  enable_testing()
  # Debian 12 has Catch2 2.13, Ubuntu 24.04 has 3.4 and Debian 13 has 3.7.
  find_package(Catch2 REQUIRED)
  if(Catch2_VERSION VERSION_LESS 3)
    add_library(bulkhead_catch_main STATIC "${CMAKE_SOURCE_DIR}/tests/catch_main.cpp")
    target_link_libraries(bulkhead_catch_main PUBLIC Catch2::Catch2 bulkhead_flags)
  else()
    add_library(bulkhead_catch_main INTERFACE)
    target_include_directories(bulkhead_catch_main INTERFACE "${CMAKE_SOURCE_DIR}/tests/catch3")
    target_link_libraries(bulkhead_catch_main INTERFACE Catch2::Catch2WithMain bulkhead_flags)
  endif()
endif()

# Time limits of tests in seconds, and the factor for the limits inside the scripts. A test needs up
# to five times as long with a sanitizer.
set(BULKHEAD_TEST_PATIENCE 1)
set(BULKHEAD_TEST_TIMEOUT 300)
set(BULKHEAD_SCRIPT_TIMEOUT 400)
if(BULKHEAD_SANITIZE)
  set(BULKHEAD_TEST_PATIENCE 5)
  set(BULKHEAD_TEST_TIMEOUT 600)
  set(BULKHEAD_SCRIPT_TIMEOUT 900)
endif()

# bulkhead_add_test(NAME file.cpp... LIBS target... [SEPARATE]): adds a Catch2 program that ctest
# runs as NAME. With SEPARATE, each file is compiled separately, because the files define fixtures
# with the same names.
function(bulkhead_add_test name)
  if(NOT BULKHEAD_TESTS)
    return()
  endif()
  cmake_parse_arguments(arg "SEPARATE" "TIMEOUT" "LIBS" ${ARGN})
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  if(arg_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_link_libraries(${name} PRIVATE bulkhead_flags bulkhead_catch_main ${arg_LIBS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT ${BULKHEAD_TEST_TIMEOUT})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT})
endfunction()

# bulkhead_add_fuzzer(NAME LIBS target...): adds tests/fuzz/NAME_fuzz.cpp. With BULKHEAD_FUZZ, it is
# a libFuzzer program. Otherwise, it is the test fuzz_NAME, which runs it once on each file of
# tests/fuzz/corpus/NAME.
function(bulkhead_add_fuzzer name)
  cmake_parse_arguments(arg "" "" "LIBS" ${ARGN})
  set(source "${CMAKE_SOURCE_DIR}/tests/fuzz/${name}_fuzz.cpp")
  if(BULKHEAD_FUZZ)
    add_executable(${name} "${source}")
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${name} PRIVATE bulkhead_flags ${arg_LIBS})
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/fuzz")
    if(NOT TARGET fuzzers)
      add_custom_target(fuzzers)  # builds all fuzzers and nothing else
    endif()
    add_dependencies(fuzzers ${name})
  elseif(BULKHEAD_TESTS)
    add_executable(fuzz_${name} "${source}" "${CMAKE_SOURCE_DIR}/tests/fuzz/run_corpus.cpp")
    target_link_libraries(fuzz_${name} PRIVATE bulkhead_flags ${arg_LIBS})
    set_target_properties(fuzz_${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/tests")
    add_test(NAME fuzz_${name} COMMAND fuzz_${name} "${CMAKE_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    set_tests_properties(fuzz_${name} PROPERTIES TIMEOUT ${BULKHEAD_TEST_TIMEOUT})
  endif()
endfunction()
