"""Images for tests, made of this machine's own programs: none can be pulled here."""

import io
import pathlib
import re
import subprocess
import tarfile
import urllib.parse

import engine

# git finds its helpers in this folder; of these three one program does it all.
GIT_CORE = "/usr/lib/git-core"
PROGRAMS = ["/usr/bin/git", "/usr/bin/curl", "/bin/bash", f"{GIT_CORE}/git", f"{GIT_CORE}/git-remote-http",
            f"{GIT_CORE}/git-remote-https", f"{GIT_CORE}/git-submodule"]
FILES = {
    # What an image has that knows TLS; ours is mounted over it.
    "etc/ssl/certs/ca-certificates.crt": "# none\n",
    "etc/nsswitch.conf": "hosts: files dns\n",
    "usr/share/git-core/templates/description": "\n",
}
LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")


def with_git(environment=()):
    """A tar of busybox, bash, git and curl with what they link. The body for /images/create."""
    wanted = {}
    for program in PROGRAMS:
        _add(wanted, program)
    return _tar(wanted)


def import_image(of, name="tools:test", changes=("ENV PATH=/usr/bin:/bin", "ENV FROM_IMAGE=yes", "USER 0"), tar=None):
    repository, tag = name.split(":")
    query = "&".join(f"changes={urllib.parse.quote(change)}" for change in changes)
    return of.request("POST", f"/images/create?fromSrc=-&repo={repository}&tag={tag}&{query}", tar or with_git(),
                      {"Content-Type": "application/x-tar"})


def with_busybox(*entries):
    """A tar of busybox and of `entries`, each made by folder(), link() or regular()."""
    made = io.BytesIO()
    ours = {entry.name for entry, _ in entries}
    with tarfile.open(fileobj=made, mode="w") as tar, tarfile.open(fileobj=io.BytesIO(engine.busybox_tar())) as base:
        for entry in base:
            if entry.name not in ours:
                tar.addfile(entry, base.extractfile(entry) if entry.isreg() else None)
        for entry, content in entries:
            tar.addfile(entry, io.BytesIO(content))
    return made.getvalue()


def folder(path):
    return _entry(path, tarfile.DIRTYPE), b""


def link(path, target):
    entry = _entry(path, tarfile.SYMTYPE)
    entry.linkname = target
    return entry, b""


def regular(path, content):
    entry = _entry(path, tarfile.REGTYPE)
    entry.size = len(content)
    return entry, content


def _entry(path, kind):
    entry = tarfile.TarInfo(path.lstrip("/"))
    entry.type, entry.mode = kind, 0o777
    return entry


def _add(wanted, path):
    """With the libraries that it needs."""
    wanted[path] = pathlib.Path(path).resolve()
    listed = subprocess.run(["ldd", path], capture_output=True, text=True, check=False)
    for library in LIBRARY.findall(listed.stdout):
        wanted[library] = pathlib.Path(library).resolve()


def _tar(wanted):
    busybox = io.BytesIO(engine.busybox_tar())
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        with tarfile.open(fileobj=busybox) as base:
            for entry in base:
                if f"/{entry.name}" not in wanted:
                    tar.addfile(entry, base.extractfile(entry) if entry.isreg() else None)
        for path, text in FILES.items():
            entry = tarfile.TarInfo(path)
            entry.mode, entry.size = 0o644, len(text)
            tar.addfile(entry, io.BytesIO(text.encode()))
        for path, source in sorted(wanted.items()):
            entry = tarfile.TarInfo(path.lstrip("/"))
            entry.mode, entry.size = 0o755, source.stat().st_size
            tar.addfile(entry, io.BytesIO(source.read_bytes()))
    return file.getvalue()
