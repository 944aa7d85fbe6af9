"""What a person is told when a sandboxed kernel ends that nobody asked to end."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import expect

from .lab import Lab
from .person import Person
from .test_pictures import TAKE_MEMORY

REASON = (
    "The sandbox stopped the kernel of {}: it needed more than 2 GiB of memory. Raise `memory_limit` to allow more."
)


def close_jupyters_own_word(person: Person) -> None:
    """Close the dialog that says that the kernel died, and wait for its successor."""
    dialog = person.page.get_by_role("dialog")
    expect(dialog).to_contain_text("appears to have died. It will restart automatically.")
    dialog.get_by_role("button", name="OK").click()
    person.await_kernel()


def test_person_is_told_which_limit_ended_the_kernel_and_can_go_on(
    new_person: Callable[[], Person], lab: Lab, notebook: Callable[..., str], limited: str
) -> None:
    path, other = "limits.ipynb", notebook("'another notebook'")
    lab.write_notebook(path, TAKE_MEMORY, "6 * 7", kernel=limited)
    person, onlooker = new_person(), new_person()
    person.open(path)
    onlooker.open(path, front="notebooks/")
    person.run(0)
    for one in (person, onlooker):
        expect(one.toasts).to_contain_text(REASON.format(path))
        expect(one.toasts).to_have_count(1)
        close_jupyters_own_word(one)

    person.run(1)
    expect(person.cell(1)).to_contain_text("42")
    person.page.get_by_role("region", name="File Browser").get_by_text(other).dblclick()
    expect(person.cell(0)).to_contain_text("another notebook")
    person.toasts.get_by_role("button", name="Show").click()
    expect(person.page.get_by_role("tab", name=path)).to_have_attribute("aria-selected", "true")
    expect(person.toasts).to_have_count(0)

    onlooker.reload()
    onlooker.await_kernel()
    onlooker.run(1)
    expect(onlooker.cell(1)).to_contain_text("42")
    expect(onlooker.toasts).to_have_count(0)


def test_kernel_that_was_meant_to_restart_or_end_needs_no_word(
    person: Person, notebook: Callable[..., str], limited: str
) -> None:
    person.open(notebook("exit()", "6 * 7", kernel=limited))
    person.notebook.get_by_role("button", name="Restart the kernel").first.click()
    person.page.get_by_role("dialog").get_by_role("button", name="Confirm Kernel Restart").click()
    person.await_kernel()
    person.run(0)
    close_jupyters_own_word(person)
    person.run(1)
    expect(person.cell(1)).to_contain_text("42")
    expect(person.toasts).to_have_count(0)
