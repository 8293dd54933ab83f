"""What package managers fetch from: an index and one package of each kind, as the files of a web.Web."""

import base64
import gzip
import hashlib
import io
import json
import pathlib
import subprocess
import tarfile
import tempfile
import zipfile

JSON, HTML, BINARY = "application/json", "text/html", "application/octet-stream"


def _tar_gz(files):
    """{name: text} as a compressed archive."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def npm(host, *names):
    """Packages whose module is their own name."""
    files = {}
    for name in names:
        stem = name.rsplit("/", maxsplit=1)[-1]
        tarball = _tar_gz({"package/package.json": json.dumps({"name": name, "version": "1.0.0", "main": "index.js"}),
                           "package/index.js": f"module.exports = {json.dumps(name)}\n"})
        path = f"/{name}/-/{stem}-1.0.0.tgz"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(tarball).digest()).decode()
        version = {"name": name, "version": "1.0.0", "main": "index.js",
                   "dist": {"tarball": f"https://{host}{path}", "integrity": integrity}}
        about = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
        files[path] = BINARY, tarball
        files["/" + name.replace("/", "%2f")] = JSON, json.dumps(about).encode()
    return files


def pypi(name):
    """A wheel whose module has NAME = its own name."""
    wheel, info = f"{name}-1.0-py3-none-any.whl", f"{name}-1.0.dist-info"
    parts = {f"{name}.py": f"NAME = {name!r}\n",
             f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
             f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    parts[f"{info}/RECORD"] = "".join(f"{part},,\n" for part in [*parts, f"{info}/RECORD"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for part, text in parts.items():
            archive.writestr(part, text)
    digest = hashlib.sha256(out.getvalue()).hexdigest()
    page = f'<!DOCTYPE html><html><body><a href="/files/{wheel}#sha256={digest}">{wheel}</a></body></html>'
    return {f"/simple/{name}/": (HTML, page.encode()), f"/files/{wheel}": (BINARY, out.getvalue())}


def cargo(host, name):
    """A sparse index of one crate, which has a name of four letters or more."""
    crate = _tar_gz({f"{name}-0.1.0/Cargo.toml": f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n',
                     f"{name}-0.1.0/src/lib.rs": "pub fn answer() -> i32 { 42 }\n"})
    line = {"name": name, "vers": "0.1.0", "deps": [], "cksum": hashlib.sha256(crate).hexdigest(), "features": {},
            "yanked": False}
    return {"/index/config.json": (JSON, json.dumps({"dl": f"https://{host}/dl/{{crate}}/{{version}}.crate"}).encode()),
            f"/index/{name[:2]}/{name[2:4]}/{name}": ("text/plain", json.dumps(line).encode() + b"\n"),
            f"/dl/{name}/0.1.0.crate": (BINARY, crate)}


def apt(name):
    """A repository of one package with one file, /usr/share/NAME."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "root"
        (root / "DEBIAN").mkdir(parents=True)
        (root / "usr/share").mkdir(parents=True)
        control = f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: T <t@forge.test>\nDescription: x\n"
        (root / "DEBIAN/control").write_text(control)
        (root / "usr/share" / name).write_text("a file\n")
        root.chmod(0o755)
        deb = pathlib.Path(folder) / "it.deb"
        subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(deb)], check=True, capture_output=True)
        package = deb.read_bytes()
    path = f"pool/{name}_1.0_all.deb"
    index = f"{control}Filename: {path}\nSize: {len(package)}\nSHA256: {hashlib.sha256(package).hexdigest()}\n\n".encode()
    packages = {"main/binary-amd64/Packages": index, "main/binary-amd64/Packages.gz": gzip.compress(index)}
    sums = "".join(f" {hashlib.sha256(data).hexdigest()} {len(data)} {file}\n" for file, data in packages.items())
    release = ("Suite: stable\nCodename: stable\nDate: Sat, 01 Jan 2022 00:00:00 UTC\nArchitectures: amd64\n"
               f"Components: main\nSHA256:\n{sums}").encode()
    return {"/debian/dists/stable/Release": (BINARY, release), f"/debian/{path}": (BINARY, package),
            **{f"/debian/dists/stable/{file}": (BINARY, data) for file, data in packages.items()}}
