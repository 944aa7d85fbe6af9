from __future__ import annotations

from jupyter_agentbox.core.redaction import Redaction
from tests.samples import a_call

from .attack import Attack

ATTACK = Attack(
    "leave a password in the record of calls, in the ways in which commands and programs write one",
    plain=False,
    control="test_without_the_setting_each_of_them_is_kept",
)
SECRET = "Hunter2AndMore"  # what is looked for
WRITTEN = (
    f"shop --password={SECRET}",
    f"shop --db-password {SECRET}",
    f"run(['shop', '--token', '{SECRET}'])",
    f"os.environ['API_KEY'] = '{SECRET}'",
    f'os.environ["API_KEY"]="{SECRET}"',
    f"(password := '{SECRET}')",
    f'password = """\n{SECRET}"""',
    f"password = f'{SECRET}'",
    f"password = 'it\\'s {SECRET}'",
)


def attack(redaction: Redaction) -> list[str]:
    """Return the ways in which the password is kept."""
    calls = {text: a_call(arguments={"code": text}) for text in WRITTEN}
    calls["a list"] = a_call(arguments={"args": ["shop", "--password", SECRET]})
    return [text for text, call in calls.items() if SECRET in str(redaction.call(call)[0].arguments)]


def test_without_the_setting_each_of_them_is_kept() -> None:
    assert len(attack(Redaction(()))) == len(WRITTEN) + 1


def test_none_of_them_is_kept() -> None:
    assert attack(Redaction()) == []
