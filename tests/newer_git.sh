#!/bin/bash
# Runs end-to-end tests with a newer git inside the sandboxes: newer_git.sh TEST.py...
#
# That git is built from the source package of Debian's unstable suite, which comes by apt from the mirror that this
# machine uses, through a configuration of its own (the machine's lists stay as they are). Built once a version, in
# $XDG_CACHE_HOME/sallyport-newer-git; one to five minutes. Exits with 77 (skipped) when no mirror can be reached.
set -euo pipefail
tests=$(cd "$(dirname "$0")/e2e" && pwd)
cache=${XDG_CACHE_HOME:-/var/tmp}/sallyport-newer-git
suite=${SALLYPORT_NEWER_GIT_SUITE:-sid}
mkdir -p "$cache/lists/partial" "$cache/archives/partial"
cd "$cache"

mirror=$(grep -rhoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d 2>/dev/null |
  head -n 1 | tr -d ' ' || true)
if [[ -z $mirror ]]; then
  echo "newer_git: apt names no Debian mirror" >&2
  exit 77
fi
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >sources.list
apt=(apt-get -qq -o "Dir::Etc::SourceList=$cache/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o "Dir::State::Lists=$cache/lists" -o "Dir::Cache=$cache" -o APT::Sandbox::User=root)
if ! "${apt[@]}" update; then
  echo "newer_git: $mirror cannot be reached" >&2
  exit 77
fi
version=$(apt-cache "${apt[@]:2}" showsrc git | sed -n 's/^Version: *//p' | sort -V | tail -n 1)
git=$cache/${version//[^0-9a-zA-Z.~-]/_}
if [[ ! -x $git/bin/git ]]; then
  rm -rf source && mkdir source
  (cd source && "${apt[@]}" source --download-only --only-source "git=$version" && tar xf git_*.orig.tar.* --strip-components=1)
  flags=(prefix="$git" NO_GETTEXT=1 NO_TCLTK=1 NO_PYTHON=1 NO_PERL=1 NO_EXPAT=1 NO_RUST=1 CFLAGS=-O1
    NO_INSTALL_HARDLINKS=1 INSTALL_SYMLINKS=1)
  make -s -C source -j"$(nproc)" "${flags[@]}" all >build.log 2>&1
  make -s -C source "${flags[@]}" install >>build.log 2>&1
  rm -rf source
fi
chmod -R go+rX "$git"
"$git/bin/git" version
for test in "$@"; do
  SALLYPORT_TEST_GIT=$git /usr/bin/python3 -B "$tests/$test"
done
