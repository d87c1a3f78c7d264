# Corrects defects of header-only libraries in a copy in the build directory.
#
# When the build is configured, a probe program prints the names of the defects of the installed
# library. Only these defects are corrected, by replacing text in the copied headers. If the text is
# not found, the configure step fails and names the defect. Finally, the probe must find no defect
# in the copy.
#
#   bulkhead_correction(LIBRARY DEFECT FILE name... FROM text TO text)
#       Declares one replacement. A defect may need several. FILE lists the names that the header
#       has in different versions, relative to the library's directory.
#   bulkhead_correct(LIBRARY SOURCE folder COPY folder FOLDER name PROBES file... VERSION text)
#       Copies SOURCE/FOLDER to COPY/FOLDER and corrects the copy. Each probe is built and run
#       separately. If a probe named DEFECT.compiles.cpp does not compile, the library has DEFECT.
#
# A new copy is made only if the version of the library, the compiler or these files change, because
# every new copy causes a rebuild of everything that includes it.

function(bulkhead_correction library defect)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "FROM;TO" "FILE")
  # The texts contain semicolons, so they cannot be elements of lists.
  get_property(count GLOBAL PROPERTY "corrections_${library}_count")
  if(NOT count)
    set(count 0)
  endif()
  set_property(GLOBAL PROPERTY "corrections_${library}_${count}_defect" "${defect}")
  set_property(GLOBAL PROPERTY "corrections_${library}_${count}_file" "${arg_FILE}")
  set_property(GLOBAL PROPERTY "corrections_${library}_${count}_from" "${arg_FROM}")
  set_property(GLOBAL PROPERTY "corrections_${library}_${count}_to" "${arg_TO}")
  math(EXPR count "${count} + 1")
  set_property(GLOBAL PROPERTY "corrections_${library}_count" ${count})
endfunction()

# Runs the probes with the headers in `include`. Sets `out` to the names of the defects found.
function(bulkhead_probe library include probes out)
  set(found)
  foreach(probe ${probes})
    get_filename_component(name "${probe}" NAME)
    set(work "${CMAKE_CURRENT_BINARY_DIR}/probe_${library}/${name}")
    if(name MATCHES "^(.*)\\.compiles\\.cpp$")
      set(defect "${CMAKE_MATCH_1}")
      execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -isystem "${include}" -fsyntax-only "${probe}"
        RESULT_VARIABLE result OUTPUT_QUIET ERROR_QUIET)
      if(NOT result EQUAL 0)
        list(APPEND found "${defect}")
      endif()
    else()
      file(MAKE_DIRECTORY "${work}")
      # With these options, undefined behaviour terminates the child process of a probe, which then
      # reports the defect.
      execute_process(COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -O1
          -fsanitize=signed-integer-overflow,unreachable -fsanitize-undefined-trap-on-error
          -isystem "${include}" "${probe}" -o "${work}/probe"
        RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
      if(NOT result EQUAL 0)
        message(FATAL_ERROR "${library} in ${include}: the probe ${probe} does not compile:\n${text}")
      endif()
      execute_process(COMMAND "${work}/probe" RESULT_VARIABLE result OUTPUT_VARIABLE text
        ERROR_VARIABLE text TIMEOUT 60)
      if(NOT result EQUAL 0)
        message(FATAL_ERROR "${library} in ${include}: the probe ${probe} failed (${result}):\n${text}")
      endif()
      string(STRIP "${text}" text)
      string(REPLACE "\n" ";" text "${text}")
      list(APPEND found ${text})
    endif()
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

function(bulkhead_correct library)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE;COPY;FOLDER;VERSION" "PROBES")
  set(state "${CMAKE_CXX_COMPILER} ${CMAKE_CXX_COMPILER_VERSION} ${arg_SOURCE}")
  file(GLOB_RECURSE headers "${arg_SOURCE}/${arg_FOLDER}/*")
  foreach(file ${CMAKE_CURRENT_FUNCTION_LIST_FILE} ${CMAKE_CURRENT_LIST_FILE} ${arg_PROBES} ${headers})
    file(SHA256 "${file}" digest)
    string(APPEND state " ${digest}")
  endforeach()
  string(SHA256 state "${state}")
  if(EXISTS "${arg_COPY}/.corrected-${state}")
    return()
  endif()
  file(REMOVE_RECURSE "${arg_COPY}")
  file(MAKE_DIRECTORY "${arg_COPY}")
  file(COPY "${arg_SOURCE}/${arg_FOLDER}" DESTINATION "${arg_COPY}")

  # The probes use the copy. With -isystem /usr/include for SOURCE, C++ headers would not find the
  # headers of the C library.
  bulkhead_probe(${library} "${arg_COPY}" "${arg_PROBES}" defects)
  get_property(count GLOBAL PROPERTY "corrections_${library}_count")
  foreach(defect ${defects})
    set(known FALSE)
    set(i 0)
    while(i LESS count)
      get_property(declared GLOBAL PROPERTY "corrections_${library}_${i}_defect")
      if(declared STREQUAL defect)
        set(known TRUE)
        get_property(names GLOBAL PROPERTY "corrections_${library}_${i}_file")
        get_property(from GLOBAL PROPERTY "corrections_${library}_${i}_from")
        get_property(to GLOBAL PROPERTY "corrections_${library}_${i}_to")
        set(at -1)
        foreach(name ${names})
          set(file "${arg_COPY}/${arg_FOLDER}/${name}")
          if(EXISTS "${file}")
            file(READ "${file}" text)
            string(FIND "${text}" "${from}" at)
            break()
          endif()
        endforeach()
        if(at EQUAL -1)
          message(FATAL_ERROR "${library} ${arg_VERSION} in ${arg_SOURCE} has the defect '${defect}', and "
            "its headers differ from those that the correction was made for (${names} lacks: ${from}). "
            "Examine the defect in this version and add a correction in ${CMAKE_CURRENT_LIST_FILE}.")
        endif()
        string(REPLACE "${from}" "${to}" text "${text}")
        file(WRITE "${file}" "${text}")
      endif()
      math(EXPR i "${i} + 1")
    endwhile()
    if(NOT known)
      message(FATAL_ERROR "${library} ${arg_VERSION} in ${arg_SOURCE} has the defect '${defect}', for which "
        "there is no correction in ${CMAKE_CURRENT_LIST_FILE}.")
    endif()
  endforeach()
  if(defects)
    bulkhead_probe(${library} "${arg_COPY}" "${arg_PROBES}" left)
    if(left)
      message(FATAL_ERROR "${library} ${arg_VERSION} in ${arg_SOURCE} still has defects after the "
        "corrections: ${left}")
    endif()
  endif()
  list(JOIN defects ", " text)
  if(NOT defects)
    set(text "nothing")
  endif()
  message(STATUS "${library} ${arg_VERSION}: corrected: ${text}")
  file(WRITE "${arg_COPY}/.corrected-${state}" "${text}\n")
endfunction()
