# GRADUS_OPENBLAS_LIBRARY: OpenBLAS of the Python package scipy-openblas64 (ILP64), if it is there. The library is not linked with it:
# src/op/openblas.c loads it when a product first wants it, from beside the library or from where the system keeps it.
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
    # Beside the library of the build folder, and beside the tests, which hold it themselves.
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
