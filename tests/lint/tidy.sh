#!/bin/bash
# clang-tidy over every source file: tidy.sh BUILD_DIR. Takes minutes.
set -euo pipefail
build=$1
cd "$(dirname "$0")/../.."
find src -name '*.cc' | sort |
  xargs -P "$(nproc)" -n 1 clang-tidy-19 --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option
