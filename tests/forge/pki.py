"""A private certificate authority for tests, made with the openssl program: P-256 keys, short-lived leaves."""

import pathlib
import subprocess


def _openssl(*args):
    done = subprocess.run(["openssl", *map(str, args)], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {args[0]} failed:\n{done.stderr}")


class PrivateCa:
    """One authority. `pem` is its certificate; every leaf is a (certificate, key) pair of paths."""

    _NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")

    def __init__(self, folder, name="Private test CA"):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pem = self.folder / "ca.pem"
        self._key = self.folder / "ca.key"
        self._serial = 1
        _openssl("req", "-x509", *self._NEW_KEY, "-keyout", self._key, "-out", self.pem, "-subj", f"/CN={name}",
                 "-days", 2, "-addext", "basicConstraints=critical,CA:TRUE",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def leaf(self, *names, expired=False, usage="serverAuth", alt_names=True, signer=None):
        """A server certificate for `names`, in date or a day past it.

        `alt_names=False`: the name stands in the subject only. `signer`: a leaf that signs like an authority.
        """
        self._serial += 1
        stem = self.folder / f"leaf-{self._serial}"
        key, request, cert, extensions = (stem.with_suffix(s) for s in (".key", ".csr", ".pem", ".ext"))
        extensions.write_text("basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
                              f"extendedKeyUsage={usage}\n"
                              + ("subjectAltName=" + ",".join(f"DNS:{n}" for n in names) + "\n" if alt_names else ""))
        signer_cert, signer_key = signer or (self.pem, self._key)
        _openssl("req", "-new", *self._NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={names[0]}")
        _openssl("x509", "-req", "-in", request, "-CA", signer_cert, "-CAkey", signer_key,
                 "-set_serial", self._serial, "-days", -1 if expired else 2, "-extfile", extensions, "-out", cert)
        if signer:
            cert.write_text(cert.read_text() + signer_cert.read_text())
        return cert, key

    def self_signed(self, name):
        """A certificate that nobody but its own key vouches for."""
        cert, key = self.folder / "self.pem", self.folder / "self.key"
        _openssl("req", "-x509", *self._NEW_KEY, "-keyout", key, "-out", cert, "-subj", f"/CN={name}", "-days", 2,
                 "-addext", "basicConstraints=critical,CA:FALSE", "-addext", f"subjectAltName=DNS:{name}")
        return cert, key
