# SPDX-License-Identifier: Apache-2.0
# cachewarm_library(NAME SRCS file... [DEPS target...] [PRIVATE_DEPS target...])
# One room, one static library. PRIVATE_DEPS are the third-party targets of its platform/ folders.
# With CMAKE_UNITY_BUILD (preset release) the sources of one folder are compiled together, because most
# of the time goes into headers; the preset dev compiles each file alone and so finds missing includes.
function(cachewarm_library name)
  cmake_parse_arguments(ROOM "" "" "SRCS;DEPS;PRIVATE_DEPS" ${ARGN})
  add_library(${name} STATIC ${ROOM_SRCS})
  foreach(source ${ROOM_SRCS})
    get_filename_component(folder ${source} DIRECTORY)
    string(MAKE_C_IDENTIFIER "folder_${folder}" folder)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${folder})
  endforeach()
  set_target_properties(${name} PROPERTIES UNITY_BUILD_MODE GROUP)
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

# cachewarm_test(NAME SRCS file... DEPS target...): one GoogleTest program per room.
# Tests find their golden and corpus files by tests/fakes/source_dir.h.
function(cachewarm_test name)
  cmake_parse_arguments(ROOM "" "" "SRCS;DEPS" ${ARGN})
  add_executable(${name} ${ROOM_SRCS})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${ROOM_DEPS} GTest::gmock GTest::gtest_main)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT 900
    ENVIRONMENT_MODIFICATION "CACHEWARM_SOURCE_DIR=set:${CMAKE_SOURCE_DIR}")
endfunction()
