# find_package(TFJob CONFIG REQUIRED) defines the target TFJob::tfjob, the C++ API of TFJob. Targets that link it are
# compiled as C++20 or later.
get_filename_component(_tfjob_folder "${CMAKE_CURRENT_LIST_FILE}" REALPATH)
get_filename_component(_tfjob_folder "${_tfjob_folder}" DIRECTORY)
get_filename_component(_tfjob_prefix "${_tfjob_folder}/@TO_PREFIX@" ABSOLUTE)
foreach(_tfjob_file "@LIBDIR@/libtfjob.so.0" "include/tfjob/tfjob.h")
  if(NOT EXISTS "${_tfjob_prefix}/${_tfjob_file}")
    set(TFJob_FOUND FALSE)
    set(TFJob_NOT_FOUND_MESSAGE "the installation of TFJob in ${_tfjob_prefix} lacks ${_tfjob_file}: install it again")
  endif()
endforeach()
if(NOT DEFINED TFJob_FOUND OR TFJob_FOUND)
  if(NOT TARGET TFJob::tfjob)
    add_library(TFJob::tfjob SHARED IMPORTED)
    set_target_properties(TFJob::tfjob PROPERTIES
      IMPORTED_LOCATION "${_tfjob_prefix}/@LIBDIR@/libtfjob.so.0"
      IMPORTED_SONAME "libtfjob.so.0"
      INTERFACE_COMPILE_FEATURES "cxx_std_20"
      INTERFACE_INCLUDE_DIRECTORIES "${_tfjob_prefix}/include")
  endif()
endif()
unset(_tfjob_file)
unset(_tfjob_folder)
unset(_tfjob_prefix)
