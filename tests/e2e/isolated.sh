#!/bin/bash
# isolated.sh COMMAND...: runs it with processes, mounts and a network of its own, so that what it searches the
# machine for is never another test's. Needs root.
set -euo pipefail
exec unshare --pid --fork --kill-child --mount --mount-proc --net bash -c 'ip link set lo up && exec "$@"' isolated "$@"
