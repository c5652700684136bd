# SPDX-License-Identifier: Apache-2.0
# Language level, warnings and sanitizers: the same for every room.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  add_link_options(-fuse-ld=mold)
endif()

add_compile_options(
  -Wall -Wextra -Werror -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wnon-virtual-dtor
  -Woverloaded-virtual -Wold-style-cast -Wcast-qual -Wformat=2 -Wundef
  -Wno-missing-field-initializers  # designated initialisers leave members at their defaults
  -fno-omit-frame-pointer -fstack-protector-strong)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 reports these inside libstdc++ and absl once the sanitizers have changed the inlining.
  add_compile_options(-Wno-maybe-uninitialized -Wno-restrict -Wno-dangling-pointer)
  if(CMAKE_UNITY_BUILD)
    # Reported for every class with a member of an unnamed namespace outside the main file: in a unity
    # build all sources are.
    add_compile_options(-Wno-subobject-linkage)
  endif()
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_FORTIFY_SOURCE=2)
  # Most functions that templates generate are never called: drop them.
  add_compile_options(-ffunction-sections -fdata-sections)
  add_link_options(-Wl,-z,relro,-z,now -Wl,--gc-sections)
endif()
if(CACHEWARM_SANITIZE)
  add_compile_options(-fsanitize=${CACHEWARM_SANITIZE} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${CACHEWARM_SANITIZE})
endif()
