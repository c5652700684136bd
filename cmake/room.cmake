# SPDX-License-Identifier: Apache-2.0
# cachewarm_library(NAME SRCS file... [DEPS target...] [PRIVATE_DEPS target...])
# One room, one static library. PRIVATE_DEPS are the third-party targets of its platform/ folders.
# With CMAKE_UNITY_BUILD (presets dev and release) the sources of one folder are compiled together,
# because most of the time goes into headers. The presets tsan and fuzz compile each file alone and so find
# missing includes. Files below tests/ are always compiled alone: those of one folder share names.
set(tests_folder ${CMAKE_SOURCE_DIR}/tests)
function(cachewarm_library name)
  cmake_parse_arguments(ROOM "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ROOM_SRCS})
  foreach(source ${ROOM_SRCS})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "folder_${folder}" folder)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP)
  cmake_path(IS_PREFIX tests_folder ${CMAKE_CURRENT_SOURCE_DIR} is_fake)
  if(is_fake)
    set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PUBLIC ${ROOM_DEPS} PRIVATE ${ROOM_PRIVATE_DEPS})
endfunction()

# cachewarm_program(NAME SRCS file... DEPS target...): an executable called NAME in its room's folder.
function(cachewarm_program name)
  cmake_parse_arguments(ROOM "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ROOM_SRCS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ROOM_DEPS})
endfunction()

# cachewarm_test(NAME SRCS file... DEPS target... [SHARDS n] [SECONDS s]): one GoogleTest program per
# room. Tests find their golden and corpus files by tests/fakes/source_dir.h. A long program runs as
# n processes, each with a part of the tests (NAME, NAME_2, ...). SECONDS is about how long one of
# them takes: ctest starts the longest first, so that all cores are busy until the end. The reports
# are results/NAME.json of the build folder.
function(cachewarm_test name)
  cmake_parse_arguments(ROOM "" "SHARDS;SECONDS" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ROOM_SRCS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ROOM_DEPS} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  if(NOT ROOM_SHARDS)
    set(ROOM_SHARDS 1)
  endif()
  if(NOT ROOM_SECONDS)
    set(ROOM_SECONDS 1)
  endif()
  foreach(shard RANGE 1 ${ROOM_SHARDS})
    set(test ${name})
    if(shard GREATER 1)
      string(APPEND test _${shard})
    endif()
    math(EXPR index "${shard} - 1")
    add_test(NAME ${test} COMMAND ${name})
    set(environment
      CACHEWARM_SOURCE_DIR=set:${CMAKE_SOURCE_DIR}
      GTEST_OUTPUT=set:json:${CMAKE_BINARY_DIR}/results/${test}.json
      GTEST_TOTAL_SHARDS=set:${ROOM_SHARDS}
      GTEST_SHARD_INDEX=set:${index})
    set_tests_properties(${test} PROPERTIES TIMEOUT 900 COST ${ROOM_SECONDS}
      ENVIRONMENT_MODIFICATION "${environment}")
  endforeach()
endfunction()
