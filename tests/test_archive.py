"""Unpacking: every wanted member byte for byte, and no archive does anything else."""

import re
import shutil
import stat
import tarfile
import tracemalloc
import zipfile

import pytest
from made.corpora import SINGLES, TARS, pack, spoilt, tar_member, zip_member
from made.experiments import one_line

from ems.base.errors import EmsError
from ems.corpora.archive import BLOCK, LONGEST_LINE, SMALL, Limits, unpack
from ems.corpora.moses import count_pairs, read_pairs

ZEROS = bytes(40 << 20)  # packs to next to nothing


def tar_of(path, *members):
    with tarfile.open(path, TARS[path.name.partition(".")[2]], format=tarfile.PAX_FORMAT) as out:
        for info, content in members:
            out.addfile(info, content)
    return path


def encrypted(path):
    return patched(path, (b"PK\x03\x04", 6, b"\x01"), (b"PK\x01\x02", 8, b"\x01"))


def patched(path, *changes):
    """The file with `new` at `place` bytes after each `mark`, for (mark, place, new) in changes."""
    content = path.read_bytes()
    for mark, place, new in changes:
        skip = place - len(mark)
        first, *rest = content.split(mark)
        assert rest
        rest = [part[:skip] + new + part[skip + len(new) :] for part in rest]
        content = mark.join([first, *rest])
    path.write_bytes(content)
    return path


FILES = [("top/a.txt", b"first\n" * 1000), ("top/b.bin", bytes(range(256)) * 40), ("c", b"")]
ARCHIVES = ["zip", *TARS]
GOOD = {"good": "good"}.get
every = pytest.mark.parametrize("kind", [*ARCHIVES, *SINGLES])
archives = pytest.mark.parametrize("kind", ARCHIVES)


def all_of(name):
    return name


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(path, expected, wanted=all_of, limits=None):
    """Unpacking fails with that message and leaves nothing outside of its folder."""
    out = path.parent / "out"
    out.mkdir(exist_ok=True)
    before = {name for name in tree(path.parent) if not name.startswith("out/")}
    line = one_line(unpack, path, wanted, out, limits or Limits())
    assert re.search(expected, line)
    assert {name for name in tree(path.parent) if not name.startswith("out/")} == before
    assert str(path) in line
    return sum(file.stat().st_size for file in out.rglob("*") if file.is_file())


# --- what is wanted
@archives
def test_wanted_members_are_written_under_their_new_names(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", FILES)
    targets = {"top/b.bin": "b", "top/a.txt": "deep/down/a"}
    written = unpack(path, targets.get, tmp_path / "out")
    assert written == [tmp_path / "out/deep/down/a", tmp_path / "out/b"]
    assert [file.read_bytes() for file in written] == [FILES[0][1], FILES[1][1]]
    assert tree(tmp_path / "out") == ["b", "deep", "deep/down", "deep/down/a"]
    refused(path, "none of its .* has an expected name", lambda name: None)


@every
def test_the_bytes_decide_the_kind_of_an_archive_not_its_name(tmp_path, kind):
    path, names = pack(tmp_path / f"x.{kind}", FILES).rename(tmp_path / ".x.123.part"), []
    written = unpack(path, lambda name: names.append(name) or name, tmp_path / "out")
    contents = [content for _, content in FILES][: 1 if kind in SINGLES else 3]
    assert [file.read_bytes() for file in written] == contents
    assert names == ([path.name] if kind in SINGLES else [name for name, _ in FILES])


def test_a_name_is_normalised_and_a_single_file_loses_its_suffix(tmp_path):
    folder = tar_member("./", kind=tarfile.DIRTYPE)
    path = tar_of(tmp_path / "x.tar", folder, tar_member("./a//b", b"ab"))
    assert unpack(path, {"a/b": "ab"}.get, tmp_path / "out") == [tmp_path / "out/ab"]
    for kind in SINGLES:
        path = pack(tmp_path / f"x.tsv.{kind}", FILES, kind)
        assert unpack(path, {"x.tsv": kind}.get, tmp_path / "out") == [tmp_path / "out" / kind]


def test_a_file_that_is_no_archive_or_is_missing_is_an_error(tmp_path):
    for content in (b"", b"<html>Sorry</html>", b"just text\n" * 100):
        (tmp_path / "x").write_bytes(content)
        refused(tmp_path / "x", "expected a zip, tar, gz or bz2")
    refused(tmp_path / "gone.zip", "no such file")


# --- names and kinds of members
NAMES = {
    "/etc/x": "an absolute name",
    "../x": r"a name with `\.\.`",
    "a/../../x": r"a name with `\.\.`",
    "a/..": r"a name with `\.\.`",
    "a\\b": "a backslash",
    "..\\x": "a backslash",
    "C:/x": "a drive letter",
    "c:x": "a drive letter",
    "a\nb": "control characters",
}


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_or_target_that_leads_out_is_refused_even_if_unwanted(tmp_path, kind, name):
    path = pack(tmp_path / f"x.{kind}", [("good", b"x"), (name, b"evil")])
    refused(path, NAMES[name])
    (tmp_path / "out/good").unlink(missing_ok=True)
    refused(path, NAMES[name], GOOD)
    refused(pack(tmp_path / f"y.{kind}", FILES), NAMES[name], lambda _: name)
    refused(tmp_path / f"y.{kind}", "a file without a name", lambda _: ".")


TAR_TYPES = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
SPARSE = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,1"}


@pytest.mark.parametrize("type_", [*TAR_TYPES, "sparse"])
def test_an_unwanted_link_device_or_sparse_file_in_a_tar_is_refused(tmp_path, type_):
    kind = {"kind": type_} if type_ in TAR_TYPES else SPARSE
    path = tar_of(tmp_path / "x.tar", tar_member("good", b"x"), tar_member("evil", **kind))
    refused(path, "'evil' is a link, a device or a sparse file", GOOD)


@pytest.mark.parametrize("type_", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_an_unwanted_link_or_device_in_a_zip_is_refused(tmp_path, type_):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("good", "x")
        archive.writestr(zip_member("evil", type_), "/etc/passwd")
    refused(tmp_path / "x.zip", "'evil' is a link or a device", GOOD)


@pytest.mark.parametrize("kind", ["zip", "tar"])
@pytest.mark.parametrize("names", [("a", "a"), ("a", "./a"), ("a", "a/b"), ("a/b", "a")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_with_one_target_are_refused(tmp_path, kind, names):
    path = pack(tmp_path / f"x.{kind}", [(name, name.encode()) for name in names])
    refused(path, "two of its members lead to")


def test_a_zip_that_is_encrypted_or_packed_by_another_method_is_refused(tmp_path):
    refused(encrypted(pack(tmp_path / "x.zip", FILES)), "is encrypted")
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
            archive.writestr("a", "x")
        refused(tmp_path / "x.zip", f"packed by method {method}")


# --- sizes
@every
def test_a_bomb_is_stopped_early(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", [("zeros", ZEROS)])
    assert path.stat().st_size < len(ZEROS) / 500 or kind == "tar"
    limits = Limits(max_bytes=SMALL) if kind == "tar" else Limits()
    written = refused(path, "unpacks to more than", limits=limits)
    assert 0 < written <= SMALL + BLOCK
    if kind in ("tar.gz", "tar.bz2"):  # which must be unpacked for any member
        path = pack(tmp_path / f"y.{kind}", [("good", b"x"), ("zeros", ZEROS)])
        shutil.rmtree(tmp_path / "out")
        refused(path, "unpacks to more than", GOOD)


@archives
def test_the_limits_hold_for_all_members_together(tmp_path, kind):
    members = [(f"m{number}", bytes(1000)) for number in range(100)]
    path = pack(tmp_path / f"x.{kind}", members)
    assert len(unpack(path, all_of, tmp_path / "all", Limits(max_members=100))) == 100
    refused(path, "has more than 99 members", limits=Limits(max_members=99))
    path = path.rename(tmp_path / f"y.{kind}")
    (tmp_path / "out").rename(tmp_path / "out1")
    refused(path, "more than the limit of 50,000 bytes", limits=Limits(max_bytes=50_000))


@every
def test_the_ratio_is_a_limit_of_large_archives_only(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", [("a", bytes(1 << 20))])
    assert unpack(path, all_of, tmp_path / "out", Limits(max_ratio=1.0))
    if kind == "zip":  # only wanted members are unpacked
        path = pack(tmp_path / "x.zip", [("zeros", ZEROS), ("good", b"x")])
        assert unpack(path, GOOD, tmp_path / "out") == [tmp_path / "out/good"]


def test_tar_headers_and_the_table_of_a_zip_cannot_exhaust_memory(tmp_path):
    path = tar_of(tmp_path / "x.tar.gz", tar_member("a", b"x", comment="x" * (32 << 20)))
    tracemalloc.start()
    refused(path, "headers of")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for number in range(20):
            info = zip_member(f"m{number}")
            info.comment = b"x" * 60_000
            archive.writestr(info, "x")
    refused(tmp_path / "x.zip", "table of contents", limits=Limits(max_members=30))
    path = pack(tmp_path / "y.tar", [(f"m{number}", b"") for number in range(3000)])  # is allowed
    assert unpack(path, {"m2999": "x"}.get, tmp_path / "out") == [tmp_path / "out/x"]


def test_a_wrong_size_in_a_header_is_an_error(tmp_path):
    path = pack(tmp_path / "x.zip", [("a", b"abc" * 1000)])
    short = (10).to_bytes(4, "little")
    refused(patched(path, (b"PK\x03\x04", 22, short), (b"PK\x01\x02", 24, short)), "damaged")
    (tmp_path / "out/a").unlink(missing_ok=True)
    info, content = tar_member("a", b"x" * 100)
    path = tmp_path / "x.tar.gz"
    with tarfile.open(path, TARS["tar.gz"]) as archive:
        archive.addfile(info, content)
        info.name, info.size = "b", 1 << 40
        archive.fileobj.write(info.tobuf() + b"x" * 1000)
    refused(path, "damaged")


# --- damage
@every
def test_an_archive_cut_anywhere_is_an_error(tmp_path, kind):
    path = pack(tmp_path / f"whole.{kind}", FILES[:2])
    content = path.read_bytes()
    if kind == "tar":
        content = content[: content.index(bytes(range(256))) + len(FILES[1][1]) + 512]
    cut = tmp_path / "cut" / f"x.{kind}"
    cut.parent.mkdir()
    for size in range(0, len(content) - 1, max(1, len(content) // 60)):
        cut.write_bytes(content[:size])
        refused(cut, "x")
        shutil.rmtree(cut.parent / "out")


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.bz2", *SINGLES])
def test_an_archive_with_a_spoilt_byte_is_an_error_or_unpacks_to_the_same(tmp_path, kind):
    members = [("a", b"abcdefg" * 30), ("b", b"hij" * 50)]
    content = pack(tmp_path / f"x.{kind}", members).read_bytes()
    expected = [content for _, content in members][: 1 if kind in SINGLES else 2]
    count = 0
    for number, wrong in enumerate(spoilt(content)):
        (tmp_path / "spoilt").write_bytes(wrong)
        try:
            files = unpack(tmp_path / "spoilt", all_of, tmp_path / str(number))
            assert [file.read_bytes() for file in files] == expected
        except EmsError:
            count += 1
    assert count > len(content) / 3


@pytest.mark.parametrize("kind", ["tar.gz", "tar.bz2"])
def test_the_checksum_of_a_packed_tar_is_read_wherever_its_end_falls(tmp_path, kind):
    size = 5 * BLOCK - 3 * 512  # with a header and the end mark, whole blocks of reading
    path = pack(tmp_path / f"x.{kind}", [("a", bytes(size))])
    content = path.read_bytes()
    path.write_bytes(content[:-5] + bytes([content[-5] ^ 0xFF]) + content[-4:])
    refused(path, "damaged")


def test_a_damaged_header_in_the_middle_of_a_tar_is_not_its_end(tmp_path):
    path = tar_of(tmp_path / "x.tar", tar_member("first", b"1"), tar_member("second", b"2"))
    path.write_bytes(path.read_bytes().replace(b"second", b"Second"))
    refused(path, "no end mark")


# --- Moses zips
@pytest.mark.parametrize("text", [b"\n", b"\0"])
def test_a_moses_zip_that_is_a_bomb_is_an_error_that_takes_little_memory(tmp_path, text):
    sides = [(f"C.de-en.{code}", text * len(ZEROS)) for code in ("de", "en")]
    path = pack(tmp_path / "x.zip", sides)
    del sides
    tracemalloc.start()
    with pytest.raises(EmsError, match=r"x\.zip: unpacks to more than"):
        count_pairs(path, "C", "de-en")
    if text == b"\0":  # a single line
        with pytest.raises(EmsError, match=r"unpacks to more than|longer than"):
            next(read_pairs(path, "C", "de-en"))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 3 * LONGEST_LINE


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_moses_zip_with_an_encrypted_or_a_duplicate_member_is_an_error(tmp_path):
    sides = [(f"C.de-en.{code}", b"x\n") for code in ("de", "en")]
    with pytest.raises(EmsError, match=r"C\.de-en\.de' is encrypted"):
        count_pairs(encrypted(pack(tmp_path / "x.zip", sides)), "C", "de-en")
    with pytest.raises(EmsError, match=r"expected one member C\.de-en\.en, found 2"):
        count_pairs(pack(tmp_path / "y.zip", [*sides, sides[1]]), "C", "de-en")
