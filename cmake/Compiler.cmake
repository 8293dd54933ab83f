# The compiler, its warnings and the sanitizers. Everything here holds for the whole tree.

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  message(FATAL_ERROR
    "GCC ${CMAKE_CXX_COMPILER_VERSION} silently miscompiles coroutines (capturing lambdas, aggregates and "
    "class-typed ?: in a statement with co_await are destroyed twice; double frees at -O2). "
    "Use clang 19: scripts/setup installs it, and the presets choose it (cmake --preset release).")
endif()

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
                    -Wold-style-cast -Woverloaded-virtual -Wnull-dereference -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # switch over an enum names every value, so that a new value is a compile error and not a silent default.
  add_compile_options(-Wswitch-enum -Wimplicit-fallthrough -Wthread-safety)
  # libstdc++ 12 uses its own deprecated get_temporary_buffer in stable_sort; and a designated initializer that leaves the
  # defaults alone is what they are for.
  add_compile_options(-Wno-deprecated-declarations -Wno-missing-designated-field-initializers)
  add_link_options(-fuse-ld=lld)
endif()

add_compile_options(-fstack-protector-strong -fno-omit-frame-pointer)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  add_compile_definitions(_FORTIFY_SOURCE=2 _GLIBCXX_ASSERTIONS)
endif()
add_link_options(-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack)

# One of: empty, "address,undefined", "thread", "fuzzer,address,undefined". Set by the presets.
set(SALLYPORT_SANITIZE "" CACHE STRING "sanitizers to build with")
if(SALLYPORT_SANITIZE)
  string(REPLACE "fuzzer," "fuzzer-no-link," sanitize_everywhere "${SALLYPORT_SANITIZE}")
  add_compile_options(-fsanitize=${sanitize_everywhere} -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitize_everywhere})
endif()
