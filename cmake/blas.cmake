# Sets GRADUS_OPENBLAS_LIBRARY to the OpenBLAS (ILP64) of the Python package scipy-openblas64, if that is installed. The library is not linked with it:
# src/op/openblas.c loads it at the first product that needs it, from the library's own folder or from the system's library path.
if(GRADUS_BLAS STREQUAL "none")
  set(GRADUS_HAS_OPENBLAS 0)
  message(STATUS "BLAS: built-in kernels")
else()
  set(GRADUS_HAS_OPENBLAS 1)
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -c "import scipy_openblas64 as b; print(b.get_lib_dir())"
    OUTPUT_VARIABLE openblas_directory OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(openblas_directory)
    set(openblas_name libscipy_openblas64_.so)
    set(GRADUS_OPENBLAS_LIBRARY ${openblas_directory}/${openblas_name})
    # The tests contain the library statically, so they look for OpenBLAS in their own folder.
    foreach(folder "" test)
      file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
      file(CREATE_LINK ${GRADUS_OPENBLAS_LIBRARY} ${CMAKE_BINARY_DIR}/${folder}/${openblas_name} SYMBOLIC)
    endforeach()
    message(STATUS "BLAS: ${GRADUS_OPENBLAS_LIBRARY}")
  elseif(GRADUS_BLAS STREQUAL "openblas")
    message(FATAL_ERROR "GRADUS_BLAS=openblas, but ${Python3_EXECUTABLE} has no scipy_openblas64")
  else()
    message(STATUS "BLAS: OpenBLAS if the system has it when the library runs, else built-in kernels")
  endif()
endif()
set_source_files_properties(src/op/openblas.c PROPERTIES COMPILE_DEFINITIONS GRD_OPENBLAS=${GRADUS_HAS_OPENBLAS})
