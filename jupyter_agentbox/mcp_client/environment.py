"""The `envFile` of an MCP server's configuration."""

from __future__ import annotations


def parse_env_file(text: str) -> dict[str, str]:
    """Read the lines of an ``envFile``: ``NAME=value``, quotes optional, ``#`` comments, ``export`` allowed.

    Raises
    ------
    ValueError
        If a line is none of these; the message has its number and never its text.
    """
    values: dict[str, str] = {}
    for number, line in enumerate(map(str.strip, text.splitlines()), 1):
        if not line or line.startswith("#"):
            continue
        name, equals, value = line.removeprefix("export ").partition("=")
        if not equals or not name.strip() or "\0" in line:
            raise ValueError(f"line {number} is not `NAME=value`")
        values[name.strip()] = _unquote(value.strip())
    return values


def _unquote(value: str) -> str:
    quote = value[:1]
    if quote in ("'", '"') and (end := value.rfind(quote)) > 0:
        inner = value[1:end]
        return inner if quote == "'" else inner.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    return value.split(" #", 1)[0].rstrip()
