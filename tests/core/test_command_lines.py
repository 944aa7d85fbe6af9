from __future__ import annotations

import time

import pytest

from jupyter_agentbox.core.command_lines import secrets_in_text, secrets_in_words

KEY = "hunter2-and-more"


def found(text: str) -> list[str]:
    return [text[start:end] for start, end in secrets_in_text(text)]


@pytest.mark.parametrize(
    "text",
    [
        f"curl -u ada:{KEY} https://example.org",
        f"curl -uada:{KEY} https://example.org",
        f"curl -sSu 'ada:{KEY}' https://example.org",
        f'curl --user "ada:{KEY}" https://example.org',
        f"curl --user=ada:{KEY} https://example.org",
        f"curl -x proxy --proxy-user ada:{KEY} https://example.org",
        f"curl --oauth2-bearer {KEY} https://example.org",
        f'curl -u ada:"{KEY}" x',
        f"/usr/bin/curl \\\n  -o C:\\x \\\n  -u ada:{KEY} \\\n  x",
        f"http -a ada:{KEY} example.org",
        f"mysql -u root -p{KEY} shop",
        f"mysql -u root -p'{KEY}' shop",
        f"mysqldump -p{KEY} shop | gzip > shop.gz",
        f"sshpass -p {KEY} ssh example.org",
        f"docker login -u ada -p {KEY} example.org",
        f"docker   login -p{KEY} example.org",
        f"redis-cli -a {KEY} ping",
        f"ldapsearch -D cn=ada -w {KEY}",
        f"openssl rsa -passin {KEY} -in key.pem",
        f'os.system("sudo curl -u ada:{KEY}") + "x"',
        f"os.system('mysql -p{KEY}')",
        f"""print("it is 'curl -u ada:{KEY}' or so")""",
        f'{{"command": "curl -u \\"ada:{KEY}\\" x"}}',
        f"don't: curl -u ada:'{KEY}' x",
        f"first zip it and then curl -u ada:{KEY} x",
        f"http or curl -u ada:{KEY} x",
        f"zip mysql -P {KEY}",
        f"docker login -u mysql -p {KEY}",
        f"https to docker login -u ada -p {KEY}",
    ],
)
def test_a_secret_is_found_in_a_command_line(text: str) -> None:
    assert found(text) == [KEY]


def test_the_part_of_a_word_before_its_quotes_counts() -> None:
    assert found("curl -u ada:hun'ter 2' x") == ["hun'ter 2"]


@pytest.mark.parametrize("quote", ['"', "'", '\\"'])
def test_a_command_that_another_one_is_given_in_quotes_is_read(quote: str) -> None:
    assert found(f"sshpass -p {KEY}1 ssh example.org {quote}mysql -p{KEY}2 shop{quote}") == [f"{KEY}1", f"{KEY}2"]


def test_each_command_of_a_text_is_read() -> None:
    assert found(f"mysql -p{KEY}1 a; mysql -p{KEY}2 b\ncurl x -u a:{KEY}3 && ls") == [f"{KEY}{n}" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "text",
    [
        "curl -u ada https://example.org",
        "curl -u $NAME:$PASSWORD https://example.org",
        'curl -u "$NAME:${PASSWORD}" -u "ada:$(pass show x)" https://example.org',
        "curl -o out:put https://example.org:8080",
        "curl https://example.org; tar -u a:b",
        "curl -H --user",
        "mysql -u root -p shop",
        "mysql --port=3306 -h db:3306",
        "docker run -p 8080:80 nginx",
        "docker login -u ada -p",
        "redis-cli -a -x",
        "mycurl -u ada:secret",
        "call curl with -u for a user: and a word",
        'say("mysql", -p)',
    ],
)
def test_nothing_else_is(text: str) -> None:
    assert found(text) == []


def test_a_secret_is_found_in_a_command_that_is_a_list() -> None:
    assert list(secrets_in_words(["/usr/bin/curl", "-x", "-u", f"ada:{KEY}"])) == [(3, 4)]
    assert list(secrets_in_words(["docker", "login", f"-p{KEY}"])) == [(2, 2)]
    assert list(secrets_in_words(["docker", "exec", "db", "mysql", f"-p{KEY}"])) == [(4, 2)]
    assert list(secrets_in_words(["sudo", "/usr/bin/curl", "-u", f"ada:{KEY}"])) == [(3, 4)]
    assert list(secrets_in_words(["sudo", "docker", "login", "-p", KEY])) == [(4, 0)]
    assert list(secrets_in_words(["docker", "run", "-p", "80:80"])) == []
    assert list(secrets_in_words([])) == []


@pytest.mark.parametrize(
    "part",
    [
        *("curl ", 'curl "', "curl '", 'curl -u \\"', "curl -u a:", "mysql -p", "curl -s", "'", '"\\'),
        *("docker login ", "docker  ", "curl\\\n", "http -a:", "7z '", "zip 'curl ", "zip curl mysql http "),
    ],
)
def test_a_long_text_takes_time_in_proportion(part: str) -> None:
    begun = time.process_time()
    list(secrets_in_text("curl " + part * (100_000 // len(part))))
    assert time.process_time() - begun < 5
