"""Archives for the tests, good and evil, of every kind that ems unpacks."""

import bz2
import gzip
import io
import stat
import tarfile
import zipfile

from ems.base.errors import EmsError

TARS = {"tar": "w", "tar.gz": "w:gz", "tar.bz2": "w:bz2"}
SINGLES = {"gz": gzip.compress, "bz2": bz2.compress}
ZEROS = bytes(40 << 20)  # packs to next to nothing


def pack(path, members, kind=None):
    """An archive of (name, bytes) whose kind is the path's suffix, unless it is given."""
    kind = kind or next(kind for kind in ("zip", *TARS, *SINGLES) if path.name.endswith(f".{kind}"))
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members:
                archive.writestr(zip_member(name), content, zipfile.ZIP_DEFLATED)
    elif kind in TARS:
        with tarfile.open(path, TARS[kind], format=tarfile.PAX_FORMAT) as archive:
            for name, content in members:
                archive.addfile(*tar_member(name, content))
    else:
        path.write_bytes(SINGLES[kind](members[0][1]))
    return path


def zip_member(name, kind=stat.S_IFREG):
    info = zipfile.ZipInfo("")
    info.filename = name  # as it is: ZipInfo would tidy it
    info.external_attr = (kind | 0o644) << 16
    return info


def tar_member(name, content=b"", kind=tarfile.REGTYPE, **pax):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.pax_headers = len(content), kind, pax
    info.linkname = "/etc/passwd" if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE) else ""
    return info, io.BytesIO(content)


def tar_of(path, *members):
    """A tar of `tar_member`s."""
    with tarfile.open(path, TARS[path.name.partition(".")[2]], format=tarfile.PAX_FORMAT) as out:
        for info, content in members:
            out.addfile(info, content)
    return path


def encrypted(path):
    """The zip with each member said to be encrypted."""
    return patched(path, b"PK\x03\x04", 6, b"\x01", b"PK\x01\x02", 8, b"\x01")


def count_refused(contents, path, read, expected):
    """How many of the contents of a file `read` refuses; the others must be read as expected."""
    count = 0
    for content in contents:
        path.write_bytes(content)
        try:
            assert read(path) == expected
        except EmsError:
            count += 1
    return count


def spoilt(content):
    """The content with one byte changed, for each of its bytes."""
    for at, byte in enumerate(content):
        yield content[:at] + bytes([byte ^ 0x5A]) + content[at + 1 :]


def patched(path, *changes):
    """The file with `new` at `place` bytes after each `mark`, for (mark, place, new) in changes."""
    content = bytearray(path.read_bytes())
    for mark, place, new in zip(*(changes[at::3] for at in range(3)), strict=True):
        at = content.find(mark)
        assert at >= 0
        while at >= 0:
            content[at + place : at + place + len(new)] = new
            at = content.find(mark, at + 1)
    path.write_bytes(content)
    return path
