# sallyport_room(NAME LINKS room... SYSTEM target... APART file...)
#
# One static library a folder of src/. Every x.cc belongs to it; x_test.cc goes into the room's test program and
# x_fuzz.cc becomes a fuzz target of its own. LINKS is the whole list of rooms that this one may include
# (ARCHITECTURE.md, "Rooms"); tests/lint checks the #include lines against the same lists.
#
# Where files are compiled several at once (CMAKE_UNITY_BUILD, see the presets), APART are those compiled alone: they
# have names in their unnamed namespace that another file of the room has as well.
function(sallyport_room name)
  cmake_parse_arguments(ROOM "" "" "LINKS;SYSTEM;TEST_LINKS;APART" ${ARGN})

  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} *.cc)
  set_source_files_properties(${ROOM_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")

  add_library(room_${name} STATIC ${sources})
  # sallyport-init takes from the libraries only the files whose functions it calls.
  if(NOT SALLYPORT_SANITIZE)
    set_target_properties(room_${name} PROPERTIES UNITY_BUILD OFF)
  endif()
  target_include_directories(room_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
  foreach(link ${ROOM_LINKS})
    target_link_libraries(room_${name} PUBLIC room_${link})
  endforeach()
  target_link_libraries(room_${name} PUBLIC PkgConfig::fmt ${ROOM_SYSTEM})
  set_property(GLOBAL APPEND PROPERTY SALLYPORT_ROOMS ${name})

  if(tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE room_${name} GTest::gtest_main GTest::gmock)
    # For tests that read docs/ or tests/data.
    target_compile_definitions(${name}_test PRIVATE SALLYPORT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    foreach(link ${ROOM_TEST_LINKS})
      target_link_libraries(${name}_test PRIVATE room_${link})
    endforeach()
    gtest_discover_tests(${name}_test TEST_PREFIX "${name}." DISCOVERY_TIMEOUT 60
                         PROPERTIES LABELS unit TIMEOUT 600)
  endif()

  foreach(file ${fuzzers})
    string(REGEX REPLACE "_fuzz\\.cc$" "" target ${file})
    sallyport_fuzz_target(${name} ${target} ${file})
  endforeach()
endfunction()

# The same source is a libFuzzer program in the fuzz preset, and everywhere else an ordinary test that replays
# fuzz/corpus/ROOM_TARGET.
function(sallyport_fuzz_target room target file)
  set(program fuzz_${room}_${target})
  if(SALLYPORT_SANITIZE MATCHES "fuzzer")
    add_executable(${program} ${file})
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
  else()
    add_executable(${program} ${file} ${CMAKE_SOURCE_DIR}/fuzz/replay.cc)
  endif()
  target_link_libraries(${program} PRIVATE room_${room})
  add_test(NAME corpus.${room}_${target}
           COMMAND ${program} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${room}_${target})
  set_tests_properties(corpus.${room}_${target} PROPERTIES LABELS unit TIMEOUT 600)
endfunction()
