#!/bin/bash
# tidy.sh BUILD_DIR: tidy.py, with the commands of a build that compiles every file by itself.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cmake -S "$here/../.." --preset release -B "$1/one-by-one" -DCMAKE_UNITY_BUILD=OFF >/dev/null
exec /usr/bin/python3 "$here/tidy.py" "$1/one-by-one"
