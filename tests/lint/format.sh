#!/bin/bash
# Every C++ file is as clang-format would write it.
set -euo pipefail
cd "$(dirname "$0")/../.."
find src fuzz bench \( -name '*.cc' -o -name '*.h' \) -print | sort | xargs clang-format-19 --dry-run -Werror
