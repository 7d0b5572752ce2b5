# gradus_blas: OpenBLAS from the Python package scipy-openblas64 (ILP64), or nothing but GRD_OPENBLAS=0.
add_library(gradus_blas INTERFACE)
if(NOT GRADUS_BLAS STREQUAL "none")
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import scipy_openblas64 as b; print(b.get_lib_dir())"
    OUTPUT_VARIABLE GRADUS_BLAS_DIRECTORY OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(NOT GRADUS_BLAS_DIRECTORY AND GRADUS_BLAS STREQUAL "openblas")
    message(FATAL_ERROR "GRADUS_BLAS=openblas, but ${Python3_EXECUTABLE} has no scipy_openblas64")
  endif()
endif()
if(GRADUS_BLAS_DIRECTORY)
  set(GRADUS_BLAS_LIBRARY ${GRADUS_BLAS_DIRECTORY}/libscipy_openblas64_.so)
  target_link_libraries(gradus_blas INTERFACE ${GRADUS_BLAS_LIBRARY})
  target_compile_definitions(gradus_blas INTERFACE GRD_OPENBLAS=1)
  message(STATUS "BLAS: ${GRADUS_BLAS_LIBRARY}")
else()
  target_compile_definitions(gradus_blas INTERFACE GRD_OPENBLAS=0)
  message(STATUS "BLAS: built-in kernels")
endif()
