"""Laws of unpacking: what was wanted is there byte for byte, and no archive does anything else."""

import re
import shutil
import stat
import tarfile
import tracemalloc
import zipfile

import pytest
from made.archives import (
    SINGLES,
    TARS,
    ZEROS,
    count_refused,
    encrypted,
    pack,
    patched,
    spoilt,
    tar_member,
    tar_of,
    zip_member,
)
from made.experiments import one_line

from ems.base.errors import EmsError
from ems.corpora.archive import BLOCK, LONGEST_LINE, SMALL, Limits, unpack
from ems.corpora.moses import count_pairs, read_pairs

FILES = [("top/a.txt", b"first\n" * 1000), ("top/b.bin", bytes(range(256)) * 40), ("c", b"")]
ARCHIVES = ["zip", *TARS]
GOOD = {"good": "good"}.get
every = pytest.mark.parametrize("kind", [*ARCHIVES, *SINGLES])
archives = pytest.mark.parametrize("kind", ARCHIVES)
tars = pytest.mark.parametrize("kind", TARS)


def all_of(name):
    return name


def tree(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def refused(path, expected, wanted=all_of, limits=None):
    """Unpacking must fail with that message, and leave nothing outside of its folder."""
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
def test_wanted_members_are_written_byte_for_byte_under_their_new_names(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", FILES)
    places = {"top/b.bin": "b", "top/a.txt": "deep/down/a"}
    written = unpack(path, places.get, tmp_path / "out")
    assert written == [tmp_path / "out/deep/down/a", tmp_path / "out/b"]
    assert [file.read_bytes() for file in written] == [FILES[0][1], FILES[1][1]]
    assert tree(tmp_path / "out") == ["b", "deep", "deep/down", "deep/down/a"]


@every
def test_the_kind_of_an_archive_is_what_its_bytes_say_whatever_its_name(tmp_path, kind):
    path, names = pack(tmp_path / f"x.{kind}", FILES).rename(tmp_path / ".x.123.part"), []
    written = unpack(path, lambda name: names.append(name) or name, tmp_path / "out")
    contents = [content for _, content in FILES][: 1 if kind in SINGLES else 3]
    assert [file.read_bytes() for file in written] == contents
    assert names == ([path.name] if kind in SINGLES else [name for name, _ in FILES])


@pytest.mark.parametrize("kind", SINGLES)
def test_a_single_packed_file_is_a_member_with_its_name_less_the_suffix(tmp_path, kind):
    path = pack(tmp_path / f"x.tsv.{kind}", FILES, kind)
    assert unpack(path, {"x.tsv": "y"}.get, tmp_path / "out") == [tmp_path / "out/y"]


@tars
def test_names_are_tidied_before_they_are_chosen_from(tmp_path, kind):
    folder = tar_member("./", kind=tarfile.DIRTYPE)
    path = tar_of(tmp_path / f"x.{kind}", folder, tar_member("./a//b", b"ab"))
    assert unpack(path, {"a/b": "ab"}.get, tmp_path / "out") == [tmp_path / "out/ab"]


@every
def test_an_archive_without_a_wanted_member_is_an_error(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", FILES)
    refused(path, "none of its .* has an expected name", lambda name: None)


def test_what_is_no_archive_or_not_there_is_an_error(tmp_path):
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


@archives
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("wanted", [all_of, GOOD], ids=["wanted", "not wanted"])
def test_a_name_that_leads_elsewhere_is_refused_wanted_or_not(tmp_path, kind, name, wanted):
    path = pack(tmp_path / f"x.{kind}", [("good", b"x"), (name, b"evil")])
    refused(path, NAMES[name], wanted)


@archives
@pytest.mark.parametrize("place", ["../x", "/tmp/x", "a\\b", "."])
def test_nor_may_the_place_that_was_chosen_lead_elsewhere(tmp_path, kind, place):
    path = pack(tmp_path / f"x.{kind}", FILES)
    refused(path, "x", lambda name: place)


TAR_TYPES = [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE]
SPARSE = {"GNU.sparse.size": str(1 << 40), "GNU.sparse.map": "0,1"}


@tars
@pytest.mark.parametrize("type_", [*TAR_TYPES, "sparse"])
def test_links_devices_and_sparse_files_in_a_tar_are_refused_wanted_or_not(tmp_path, kind, type_):
    evil = (
        tar_member("evil", kind=type_) if type_ in TAR_TYPES else tar_member("evil", b"x", **SPARSE)
    )
    path = tar_of(tmp_path / f"x.{kind}", tar_member("good", b"x"), evil)
    refused(path, "'evil' is a link, a device or a sparse file", GOOD)


@pytest.mark.parametrize("type_", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices_in_a_zip_are_refused(tmp_path, type_):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("good", "x")
        archive.writestr(zip_member("evil", type_), "/etc/passwd")
    refused(tmp_path / "x.zip", "'evil' is a link or a device", GOOD)


@archives
@pytest.mark.parametrize("names", [("a", "a"), ("a", "./a"), ("a", "a/b"), ("a/b", "a")])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_for_one_place_are_refused(tmp_path, kind, names):
    path = pack(tmp_path / f"x.{kind}", [(name, name.encode()) for name in names])
    refused(path, "two of its members lead to")


def test_an_encrypted_zip_or_one_whose_method_unpacks_without_a_bound_is_refused(tmp_path):
    refused(encrypted(pack(tmp_path / "x.zip", FILES)), "is encrypted")
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(tmp_path / "x.zip", "w", method) as archive:
            archive.writestr("a", "x")
        refused(tmp_path / "x.zip", f"packed by method {method}")


# --- sizes


@every
def test_a_bomb_is_stopped_long_before_it_is_unpacked(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", [("zeros", ZEROS)])
    assert path.stat().st_size < len(ZEROS) / 500 or kind == "tar"
    limits = Limits(max_bytes=SMALL) if kind == "tar" else Limits()
    written = refused(path, "unpacks to more than", limits=limits)
    assert 0 < written <= SMALL + BLOCK
    if kind in ("tar.gz", "tar.bz2"):  # which must be unpacked for any member
        path = pack(tmp_path / f"y.{kind}", [("good", b"x"), ("zeros", ZEROS)])
        shutil.rmtree(tmp_path / "out")
        refused(path, "unpacks to more than", GOOD)


def test_of_a_zip_only_what_is_wanted_is_unpacked(tmp_path):
    path = pack(tmp_path / "x.zip", [("zeros", ZEROS), ("good", b"x")])
    assert unpack(path, {"good": "good"}.get, tmp_path / "out") == [tmp_path / "out/good"]


@archives
def test_the_limits_hold_for_all_members_together(tmp_path, kind):
    members = [(f"m{at}", bytes(1000)) for at in range(100)]
    path = pack(tmp_path / f"x.{kind}", members)
    assert len(unpack(path, all_of, tmp_path / "all", Limits(max_members=100))) == 100
    refused(path, "has more than 99 members", limits=Limits(max_members=99))
    path = path.rename(tmp_path / f"y.{kind}")
    (tmp_path / "out").rename(tmp_path / "out1")
    refused(path, "more than the limit of 50,000 bytes", limits=Limits(max_bytes=50_000))


@every
def test_the_ratio_is_a_limit_of_large_archives_only(tmp_path, kind):
    path = pack(tmp_path / f"x.{kind}", [("a", bytes(1 << 20))])
    assert unpack(path, all_of, tmp_path / "out")
    assert unpack(path, all_of, tmp_path / "out2", Limits(max_ratio=1.0))


@tars
def test_a_header_of_a_tar_does_not_decide_how_much_memory_it_takes(tmp_path, kind):
    path = tar_of(tmp_path / f"x.{kind}", tar_member("a", b"x", comment="x" * (32 << 20)))
    tracemalloc.start()
    refused(path, "headers of")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_nor_does_the_table_of_a_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for at in range(20):
            info = zip_member(f"m{at}")
            info.comment = b"x" * 60_000
            archive.writestr(info, "x")
    refused(tmp_path / "x.zip", "table of contents", limits=Limits(max_members=30))


def test_a_tar_may_have_many_headers(tmp_path):
    path = pack(tmp_path / "x.tar", [(f"m{at}", b"") for at in range(3000)])
    assert unpack(path, {"m2999": "x"}.get, tmp_path / "out") == [tmp_path / "out/x"]


def test_a_size_that_a_zip_states_too_small_is_an_error(tmp_path):
    path = pack(tmp_path / "x.zip", [("a", b"abc" * 1000)])
    short = (10).to_bytes(4, "little")
    refused(patched(path, b"PK\x03\x04", 22, short, b"PK\x01\x02", 24, short), "damaged")


@tars
def test_a_size_that_a_tar_states_too_large_is_an_error(tmp_path, kind):
    info, content = tar_member("a", b"x" * 100)
    path = tmp_path / f"x.{kind}"
    with tarfile.open(path, TARS[kind]) as archive:
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

    def read(path):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        return [file.read_bytes() for file in unpack(path, all_of, tmp_path / "out")]

    count = count_refused(spoilt(content), tmp_path / "spoilt", read, expected)
    assert count > len(content) / 3


@pytest.mark.parametrize("kind", ["tar.gz", "tar.bz2"])
def test_the_checksum_of_a_packed_tar_is_looked_at_wherever_its_end_falls(tmp_path, kind):
    size = 5 * BLOCK - 3 * 512  # with a header and the end mark, whole blocks of reading
    path = pack(tmp_path / f"x.{kind}", [("a", bytes(size))])
    content = path.read_bytes()
    path.write_bytes(content[:-5] + bytes([content[-5] ^ 0xFF]) + content[-4:])
    refused(path, "damaged")


def test_a_spoilt_header_in_the_middle_of_a_tar_is_no_end(tmp_path):
    path = tar_of(tmp_path / "x.tar", tar_member("first", b"1"), tar_member("second", b"2"))
    refused(patched(path, b"second", 0, b"Second"), "no end mark")


# --- Moses zips


@pytest.mark.parametrize("text", [b"\n", b"\0"])
def test_a_moses_zip_that_is_a_bomb_is_an_error_in_little_memory(tmp_path, text):
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
def test_a_moses_zip_with_an_encrypted_or_a_doubled_member_is_an_error(tmp_path):
    sides = [(f"C.de-en.{code}", b"x\n") for code in ("de", "en")]
    assert count_pairs(pack(tmp_path / "x.zip", sides), "C", "de-en") == 1
    with pytest.raises(EmsError, match=r"C\.de-en\.de' is encrypted"):
        count_pairs(encrypted(pack(tmp_path / "x.zip", sides)), "C", "de-en")
    with pytest.raises(EmsError, match=r"expected one member C\.de-en\.en, found 2"):
        count_pairs(pack(tmp_path / "y.zip", [*sides, sides[1]]), "C", "de-en")
