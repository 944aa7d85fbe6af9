from __future__ import annotations
from playwright.sync_api import expect
import re

def test_shots(new_person, notebook):
    person = new_person()
    path = notebook("1")
    person.open(path)
    person.open_panel()
    b = person.page.locator(".jp-AgentBox-panel").get_by_role("button", name="AgentBox guide")
    print("BEFORE", b.evaluate("e => (e.getRootNode().host || e.closest('jp-button') || e).outerHTML.slice(0,400)"))
    b.click()
    person.page.wait_for_timeout(1000)
    print("AFTER", b.evaluate("e => (e.getRootNode().host || e.closest('jp-button') || e).outerHTML.slice(0,400)"))
    person.page.mouse.move(600, 300)
    person.page.locator(".jp-FileBrowser").get_by_role("button", name="Refresh").first.click()
    person.page.wait_for_timeout(800)
    person.page.locator(".jp-FileBrowser").get_by_role("button", name=re.compile("filter", re.I)).first.click()
    person.page.mouse.move(600, 300)
    person.page.wait_for_timeout(800)
    print("AFTER2", b.evaluate("e => [e.matches(':hover'), e.matches(':active'), e.matches(':focus'), e.matches(':focus-visible'), getComputedStyle(e).border, getComputedStyle(e).outline, getComputedStyle(e).boxShadow, getComputedStyle(e).backgroundColor]"))
    person.page.screenshot(path="/tmp/shots/toolbar.png")
