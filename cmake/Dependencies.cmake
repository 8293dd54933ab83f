# Debian 12's packages, nothing vendored (scripts/setup installs them).

find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(GTest REQUIRED)
include(GoogleTest)

foreach(lib libseccomp libmnl libnftables libcares libpsl fmt tomlplusplus zlib)
  pkg_check_modules(${lib} REQUIRED IMPORTED_TARGET ${lib})
endforeach()

# Asio and its implementation are compiled once, in net/asio_impl.cc.
add_library(sallyport_asio INTERFACE)
target_compile_definitions(sallyport_asio INTERFACE
  BOOST_ASIO_SEPARATE_COMPILATION BOOST_ASIO_NO_DEPRECATED BOOST_ASIO_NO_TS_EXECUTORS)
target_link_libraries(sallyport_asio INTERFACE Threads::Threads)

# Boost.JSON likewise, in base/json_impl.cc.
add_library(sallyport_json STATIC ${CMAKE_SOURCE_DIR}/src/base/json_impl.cc)
# tests/lint/headers.py takes the flags of base from it.
target_include_directories(sallyport_json PRIVATE ${CMAKE_SOURCE_DIR}/src)
