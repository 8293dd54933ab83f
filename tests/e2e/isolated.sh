#!/bin/bash
# isolated.sh COMMAND...: runs it with processes, mounts and a network of its own, so that what it searches the
# machine for is never another test's; and with a folder of its own for root's state. Needs root.
set -euo pipefail
exec unshare --pid --fork --kill-child --mount --mount-proc --net bash -ec '
  ip link set lo up
  mkdir -p /var/lib/sallyport
  mount -t tmpfs -o mode=0755 tmpfs /var/lib/sallyport
  exec "$@"' isolated "$@"
