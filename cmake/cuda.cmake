# SPDX-License-Identifier: Apache-2.0
# CUDA Toolkit headers (cuda.h, nvml.h); the libraries are found by dlopen at run time. Taken from
# -DCACHEWARM_CUDA_INCLUDE, the environment variable of that name, or what tools/setup/cuda-headers
# unpacked. Defines the target cachewarm_cuda_headers.
set(CACHEWARM_CUDA_INCLUDE "" CACHE PATH "Directory with cuda.h and nvml.h")
set(cuda_cache "$ENV{CACHEWARM_CACHE}")
if(NOT cuda_cache)
  set(cuda_cache "$ENV{HOME}/.cache/cachewarm")
endif()
unset(cuda_include)
foreach(candidate
    "${CACHEWARM_CUDA_INCLUDE}" "$ENV{CACHEWARM_CUDA_INCLUDE}" "${cuda_cache}/cuda/current/include")
  if(candidate AND EXISTS "${candidate}/cuda.h" AND EXISTS "${candidate}/nvml.h")
    set(cuda_include "${candidate}")
    break()
  endif()
endforeach()
if(NOT cuda_include)
  message(FATAL_ERROR
    "cuda.h and nvml.h were not found. Run tools/setup/cuda-headers once (it unpacks NVIDIA's "
    "header wheels below ${cuda_cache}/cuda), or pass -DCACHEWARM_CUDA_INCLUDE=<directory>.")
endif()
if(TARGET cachewarm_cuda_headers)
  return()
endif()
add_library(cachewarm_cuda_headers INTERFACE)
target_include_directories(cachewarm_cuda_headers SYSTEM INTERFACE "${cuda_include}")
