"""What the server saves, reads and copies where a sandboxed kernel can put links."""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import jupyter_server
import pytest
from jupyter_client.multikernelmanager import MultiKernelManager
from jupyter_events import EventLogger
from jupyter_server.services.contents.filemanager import AsyncFileContentsManager
from jupyter_server.services.contents.largefilemanager import AsyncLargeFileManager, LargeFileManager
from jupyter_server.services.contents.manager import ContentsManager
from jupyter_server.utils import ensure_async
from tornado.web import HTTPError

from jupyter_agentbox.contents.kernel_directories import KernelDirectories
from jupyter_agentbox.contents.managers import harden_contents_manager
from jupyter_agentbox.mcp_client.limits import safe_working_directory
from jupyter_agentbox.protocol.kernel_actions import KERNEL_ACTIONS
from tests.beats import beat_of_the_loop


class Kernels:
    """The kernels of a server, as far as is asked of them."""

    def __init__(self) -> None:
        self.places: dict[str, tuple[Path, ...]] = {}

    def list_kernel_ids(self) -> list[str]:
        return list(self.places)

    def get_kernel(self, kernel_id: str) -> Any:
        return SimpleNamespace(provisioner=SimpleNamespace(kernel_directories=self.places[kernel_id]))


KERNEL_ACTIONS_SCHEMA = Path(jupyter_server.__file__).parent / "event_schemas" / "kernel_actions" / "v1.yaml"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("root/work/sub", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "root"


@pytest.fixture
def kernels(root: Path) -> Kernels:
    kernels = Kernels()
    kernels.places["one"] = (root / "work",)
    return kernels


@pytest.fixture
def contents(root: Path, kernels: Kernels) -> AsyncFileContentsManager:
    contents = AsyncFileContentsManager(root_dir=str(root))
    events = EventLogger()
    harden_contents_manager(contents, KernelDirectories(cast(MultiKernelManager, kernels), events))
    return contents


async def save(contents: AsyncFileContentsManager, path: str, content: str = "new") -> None:
    await ensure_async(contents.save({"type": "file", "format": "text", "content": content}, path))


async def refused(attempt: Any) -> bool:
    try:
        await ensure_async(attempt)
    except HTTPError as error:
        return error.status_code == 403
    return False


async def test_what_is_saved_takes_the_place_of_the_old_file_with_its_mode(
    contents: AsyncFileContentsManager, root: Path
) -> None:
    old = root / "work" / "sub" / "run.py"
    old.write_text("old")
    old.chmod(0o750)

    await save(contents, "work/sub/run.py", "new\n")

    assert (old.read_text(), stat.S_IMODE(old.stat().st_mode)) == ("new\n", 0o750)
    assert [one.name for one in old.parent.iterdir()] == ["run.py"]


async def test_a_new_file_has_the_usual_mode(contents: AsyncFileContentsManager, root: Path) -> None:
    await save(contents, "work/new.txt")
    await save(contents, "other.txt")

    assert (root / "work" / "new.txt").stat().st_mode == (root / "other.txt").stat().st_mode


async def test_nothing_is_saved_through_a_link(contents: AsyncFileContentsManager, root: Path) -> None:
    target = root.parent / "outside" / "target"
    (root / "work" / "nb.ipynb").symlink_to(target)

    assert await refused(save(contents, "work/nb.ipynb"))
    assert not target.exists()


async def test_nothing_is_saved_below_a_directory_that_is_a_link(
    contents: AsyncFileContentsManager, root: Path
) -> None:
    (root / "work" / "sub").rmdir()
    (root / "work" / "sub").symlink_to(root.parent / "outside")

    assert await refused(save(contents, "work/sub/new.txt"))
    assert not (root.parent / "outside" / "new.txt").exists()


async def test_nothing_is_read_or_copied_through_a_link(contents: AsyncFileContentsManager, root: Path) -> None:
    (root / "work" / "text.txt").symlink_to(root.parent / "outside" / "secret")

    assert await refused(contents.get("work/text.txt"))
    assert await refused(contents.create_checkpoint("work/text.txt"))
    assert not list((root / "work" / ".ipynb_checkpoints").iterdir())


async def test_an_upload_in_parts_is_whole_and_adds_nothing_to_a_link(root: Path, kernels: Kernels) -> None:
    contents = AsyncLargeFileManager(root_dir=str(root))
    harden_contents_manager(contents, KernelDirectories(cast(MultiKernelManager, kernels), EventLogger()))
    uploaded = root / "work" / "data.txt"

    async def upload(chunk: int, content: str) -> None:
        part = {"type": "file", "format": "text", "content": content, "chunk": chunk}
        await ensure_async(contents.save(part, "work/data.txt"))

    await upload(1, "one ")
    await upload(2, "two ")
    await upload(-1, "three")
    assert uploaded.read_text() == "one two three"

    await upload(1, "one ")
    uploaded.unlink()
    uploaded.symlink_to(root.parent / "outside" / "secret")
    assert await refused(upload(2, "two"))
    assert (root.parent / "outside" / "secret").read_text() == "secret"


async def test_no_checkpoint_is_written_through_a_link(contents: AsyncFileContentsManager, root: Path) -> None:
    (root / "work" / "text.txt").write_text("text")
    (root / "work" / ".ipynb_checkpoints").symlink_to(root.parent / "outside")

    assert await refused(contents.create_checkpoint("work/text.txt"))
    assert not (root.parent / "outside" / "text-checkpoint.txt").exists()


async def test_a_checkpoint_has_the_content_and_the_time_of_its_file(
    contents: AsyncFileContentsManager, root: Path
) -> None:
    (root / "work" / "text.txt").write_text("text")
    os.utime(root / "work" / "text.txt", (1, 1))

    await ensure_async(contents.create_checkpoint("work/text.txt"))
    (root / "work" / "text.txt").write_text("other")
    await ensure_async(contents.restore_checkpoint("checkpoint", "work/text.txt"))

    assert ((root / "work" / "text.txt").read_text(), (root / "work" / "text.txt").stat().st_mtime) == ("text", 1)


async def test_a_pipe_in_the_place_of_a_file_holds_nothing_up(contents: AsyncFileContentsManager, root: Path) -> None:
    os.mkfifo(root / "work" / "nb.ipynb")

    assert await refused(save(contents, "work/nb.ipynb"))


async def test_links_elsewhere_are_followed_as_ever(contents: AsyncFileContentsManager, root: Path) -> None:
    (root / "link.txt").symlink_to(root.parent / "outside" / "secret")

    await save(contents, "link.txt", "mine")

    assert (root.parent / "outside" / "secret").read_text() == "mine"


async def test_a_work_directory_is_found_by_a_link_that_leads_there(
    contents: AsyncFileContentsManager, root: Path
) -> None:
    (root / "short").symlink_to(root / "work" / "sub")
    (root / "work" / "sub" / "nb.txt").symlink_to(root.parent / "outside" / "secret")

    assert await refused(save(contents, "short/nb.txt"))


async def test_a_manager_that_keeps_contents_elsewhere_than_in_files_is_left_as_it_is(kernels: Kernels) -> None:
    elsewhere = ContentsManager()
    before = [set(vars(one)) for one in (elsewhere, elsewhere.checkpoints)]
    harden_contents_manager(elsewhere, KernelDirectories(cast(MultiKernelManager, kernels), EventLogger()))

    assert [set(vars(one)) for one in (elsewhere, elsewhere.checkpoints)] == before


def test_servers_do_not_start_where_a_kernel_can_write(
    root: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = KernelDirectories(cast(MultiKernelManager, kernels), EventLogger())
    monkeypatch.setenv("HOME", str(root.parent))

    monkeypatch.chdir(root)
    assert safe_working_directory(places.holds) is None
    monkeypatch.chdir(root / "work" / "sub")
    assert safe_working_directory(places.holds) == str(root.parent)
    monkeypatch.setenv("HOME", str(root / "work"))
    assert safe_working_directory(places.holds) == "/"


async def test_a_place_is_not_forgotten_when_its_kernel_ends(root: Path, kernels: Kernels) -> None:
    events = EventLogger()
    events.register_event_schema(KERNEL_ACTIONS_SCHEMA)
    places = KernelDirectories(cast(MultiKernelManager, kernels), events)
    events.emit(
        schema_id=KERNEL_ACTIONS, data={"action": "start", "kernel_id": "one", "status": "success", "msg": "started"}
    )
    await asyncio.gather(*events._active_listeners)

    kernels.places.clear()

    found = places.find(str(root / "work" / "nb.ipynb"))
    assert found is not None
    assert (found.place, found.parts) == (root / "work", ("nb.ipynb",))


async def test_what_another_server_recorded_is_such_a_place(root: Path) -> None:
    places = KernelDirectories(cast(MultiKernelManager, Kernels()), EventLogger(), lambda: [root / "work"])

    assert places.find(str(root / "work" / "nb.ipynb")) is not None
    assert places.find(str(root / "nb.ipynb")) is None


async def test_a_link_that_leads_to_such_a_place_hides_no_link_there(
    contents: AsyncFileContentsManager, root: Path
) -> None:
    (root / "short").symlink_to("work/sub/data")
    (root / "work" / "sub" / "data").symlink_to(root.parent / "outside")

    assert await refused(contents.get("short/secret"))
    assert await refused(save(contents, "short/new.txt"))


async def test_a_link_is_listed_and_deleted_and_not_entered(contents: AsyncFileContentsManager, root: Path) -> None:
    contents.delete_to_trash = False
    (root / "work" / "data").symlink_to(root.parent / "outside")

    listed = await ensure_async(contents.get("work"))
    assert sorted(one["name"] for one in listed["content"]) == ["data", "sub"]
    for path in ("work/data", "work/data/secret"):
        assert await refused(contents.get(path)), path
    assert await refused(contents.delete("work/data/secret"))
    assert await refused(contents.rename("work/data/secret", "work/mine"))
    assert await refused(contents.rename("work/sub", "work/data/sub"))
    assert await refused(save_directory(contents, "work/data/made"))
    assert sorted(one.name for one in (root.parent / "outside").iterdir()) == ["secret"]

    await ensure_async(contents.rename("work/data", "work/renamed"))
    assert (root / "work" / "renamed").is_symlink()


async def save_directory(contents: AsyncFileContentsManager, path: str) -> None:
    await ensure_async(contents.save({"type": "directory"}, path))


@pytest.mark.parametrize("kind", [AsyncFileContentsManager, LargeFileManager])
async def test_checkpoints_are_kept_renamed_and_deleted_where_they_are(
    root: Path, kernels: Kernels, kind: type[AsyncFileContentsManager]
) -> None:
    contents = kind(root_dir=str(root))
    harden_contents_manager(contents, KernelDirectories(cast(MultiKernelManager, kernels), EventLogger()))
    contents.delete_to_trash = False
    await save(contents, "work/sub/one.txt")
    await ensure_async(contents.create_checkpoint("work/sub/one.txt"))
    await save(contents, "other.txt")
    await ensure_async(contents.create_checkpoint("other.txt"))

    await ensure_async(contents.rename("work/sub/one.txt", "work/two.txt"))
    assert len(await ensure_async(contents.list_checkpoints("work/two.txt"))) == 1
    await ensure_async(contents.rename("work/two.txt", "three.txt"))
    assert len(await ensure_async(contents.list_checkpoints("three.txt"))) == 1
    await ensure_async(contents.rename("three.txt", "work/three.txt"))
    await ensure_async(contents.delete_checkpoint("checkpoint", "work/three.txt"))
    assert await ensure_async(contents.list_checkpoints("work/three.txt")) == []
    with pytest.raises(HTTPError) as missing:
        await ensure_async(contents.delete_checkpoint("checkpoint", "work/three.txt"))
    assert missing.value.status_code == 404
    await ensure_async(contents.delete("work/three.txt"))
    assert not (root / "work" / "three.txt").exists()


@pytest.mark.parametrize("kind", [AsyncFileContentsManager, LargeFileManager])
async def test_no_checkpoint_is_deleted_or_renamed_through_a_link(
    root: Path, kernels: Kernels, kind: type[AsyncFileContentsManager]
) -> None:
    contents = kind(root_dir=str(root))
    harden_contents_manager(contents, KernelDirectories(cast(MultiKernelManager, kernels), EventLogger()))
    contents.delete_to_trash = False
    outside = root.parent / "outside"
    (outside / "own-checkpoint.txt").write_text("mine")
    await save(contents, "work/own.txt")
    (root / "work" / ".ipynb_checkpoints").symlink_to(outside)

    async def attempt(method: str, *arguments: str) -> None:
        await ensure_async(getattr(contents, method)(*arguments))

    assert await refused(attempt("list_checkpoints", "work/own.txt"))
    assert await refused(attempt("rename", "work/own.txt", "work/other.txt"))
    await save(contents, "work/own.txt")
    assert await refused(attempt("delete", "work/own.txt"))
    assert sorted(one.name for one in outside.iterdir()) == ["own-checkpoint.txt", "secret"]


async def test_no_checkpoint_that_is_a_link_leads_elsewhere(contents: AsyncFileContentsManager, root: Path) -> None:
    contents.delete_to_trash = False
    await save(contents, "work/own.txt")
    (root / "work" / ".ipynb_checkpoints").mkdir()
    (root / "work" / ".ipynb_checkpoints" / "own-checkpoint.txt").symlink_to(root.parent / "outside" / "secret")

    assert await refused(contents.delete_checkpoint("checkpoint", "work/own.txt"))
    assert (root.parent / "outside" / "secret").read_text() == "secret"


async def test_the_server_goes_on_while_a_large_file_is_copied(
    contents: AsyncFileContentsManager, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "work" / "large.txt").write_text("text")
    copyfileobj, await_beat = shutil.copyfileobj, beat_of_the_loop()

    def slow(read: Any, written: Any) -> None:
        await_beat()
        copyfileobj(read, written)

    monkeypatch.setattr(shutil, "copyfileobj", slow)
    made = await ensure_async(contents.create_checkpoint("work/large.txt"))

    assert await ensure_async(contents.list_checkpoints("work/large.txt")) == [made]


async def test_the_server_goes_on_while_a_part_of_an_upload_is_written(
    root: Path, kernels: Kernels, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = AsyncLargeFileManager(root_dir=str(root))
    harden_contents_manager(contents, KernelDirectories(cast(MultiKernelManager, kernels), EventLogger()))
    (root / "work" / "large").write_bytes(b"first ")
    decode, await_beat = base64.b64decode, beat_of_the_loop()

    def slow(content: str) -> bytes:
        await_beat()
        return decode(content)

    monkeypatch.setattr(base64, "b64decode", slow)
    await contents._save_large_file(str(root / "work" / "large"), base64.b64encode(b"second").decode(), "base64")

    assert (root / "work" / "large").read_bytes() == b"first second"
