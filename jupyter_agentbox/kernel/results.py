"""A tool's result as a value: structured content with attribute access, or else text, images or audio.

Every value has the whole result in ``.raw``, except ``True``, ``False`` and ``None``, which cannot have attributes: for
those, call ``tools.<server>.<tool>.raw(...)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from .media import Blocks, media_of
from .tables import table_of

#: Nesting depth beyond which values stay plain dicts and lists.
_DEEPEST: Final = 100

#: The most cells of a data frame: a small answer can have as many columns as rows.
_MOST_CELLS: Final = 20_000_000

_NO_PANDAS: Final = (
    "`.df()` needs pandas, which is not installed in this kernel's environment: run `%pip install pandas`, then try"
    " again. The result itself is a list, which works without it."
)


class Record(dict[str, Any]):
    """A JSON object: a dict whose items are also attributes.

    If an item has the name of a ``dict`` method (``items``, ``keys``, …), the attribute is the method; the item is
    ``record["items"]``.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # Python's own protocols must not look up data
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            names = ", ".join(f"`{key}`" for key in list(self)[:20])
            raise AttributeError(f"the result has no item `{name}`; its items: {names or 'none'}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __delattr__(self, name: str) -> None:
        try:
            del self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(key for key in self if key.isidentifier())]

    def copy(self) -> Record:
        """Return a shallow copy, without ``.raw``."""
        return Record(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text("{...}") if cycle else printer.pretty(dict(self))

    def _ipython_display_(self) -> None:
        _display(self)

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


class Records(list[Any]):
    """A JSON array; at the top level of a result it has ``.raw``."""

    raw: CallResult

    def _ipython_display_(self) -> None:
        _display(self)

    def _repr_html_(self) -> str | None:
        return table_of(self)

    def df(self) -> Any:
        """Return a data frame with a row for each item.

        Objects become rows whose columns are their items; what an object lacks is missing in its row.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ValueError
            If it would have more than 20 million cells.
        ImportError
            If pandas is not installed in the kernel's environment.
        """
        columns = {name for item in self if isinstance(item, dict) for name in item}
        if len(self) * len(columns) > _MOST_CELLS:
            raise ValueError(
                f"a data frame of {len(self):,} rows and {len(columns):,} columns would be too large: the items have"
                " few columns in common. Choose some: `pandas.DataFrame(list(result), columns=[...])`."
            )
        try:
            import pandas  # noqa: PLC0415  # optional, and slow to import
        except ModuleNotFoundError as error:
            if error.name != "pandas":
                raise
            raise ImportError(_NO_PANDAS, name="pandas") from None
        return pandas.DataFrame(list(self))


class Text(str):
    """A text result; ``.raw`` is the whole result."""

    raw: CallResult


class Integer(int):
    """An integer result; ``.raw`` is the whole result."""

    raw: CallResult


class Number(float):
    """A number result; ``.raw`` is the whole result."""

    raw: CallResult


@dataclass(frozen=True, kw_only=True)
class CallResult:
    """The whole result of a tool call.

    Parameters
    ----------
    content : list
        The content blocks as sent (MCP's ``type``, ``text``, ``mimeType``, ``data``, …).
    structured : object
        The structured content as sent, or ``None``.
    wrapped : bool
        Whether `structured` is ``{"result": value}`` only because MCP requires an object.
    is_error : bool
        Whether the tool reports that it failed.
    meta : Record
        The result's ``_meta``.
    request_id : str or None
        The approval request of the call.
    comment : str
        The approver's comment for the code; empty if there is none.
    """

    content: list[Any] = field(default_factory=list)
    structured: Any = None
    wrapped: bool = False
    is_error: bool = False
    meta: Any = field(default_factory=Record)
    request_id: str | None = None
    comment: str = ""

    @property
    def text(self) -> str:
        """The text blocks, joined by line feeds."""
        return "\n".join(_text_of(block) or "" for block in self.content if _text_of(block) is not None)

    @property
    def value(self) -> Any:
        """The value of a call: structured content, or else text, or else the content of the blocks."""
        if self.structured is not None:
            is_wrapper = self.wrapped and isinstance(self.structured, dict) and "result" in self.structured
            return _with_raw(self.structured["result"] if is_wrapper else self.structured, self)
        if all(_text_of(block) is not None for block in self.content):
            return _with_raw(self.text, self)
        blocks = [self._value_of(block) for block in self.content]
        return blocks[0] if len(blocks) == 1 else Blocks(blocks, raw=self)

    def _value_of(self, block: Any) -> Any:
        text = _text_of(block)
        if text is not None:
            return _with_raw(text, self)
        return media_of(block, self) or _with_raw(block, self)

    def _ipython_display_(self) -> None:
        Blocks([self._value_of(block) for block in self.content])._ipython_display_()


def result_of(content: Mapping[str, Any], request_id: str | None = None) -> CallResult:
    """Parse the result in a `Reply` (`core.tools.ToolResult` as JSON)."""
    blocks = content.get("content")
    return CallResult(
        content=[_convert(block, _DEEPEST) for block in blocks if isinstance(block, dict)]
        if isinstance(blocks, list)
        else [],
        structured=_convert(content.get("structured"), _DEEPEST),
        wrapped=content.get("wrapped") is True,
        is_error=content.get("is_error") is True,
        meta=_convert(content.get("meta") or {}, _DEEPEST),
        request_id=request_id,
        comment=comment_of(content.get("record")),
    )


def comment_of(record: object) -> str:
    """Return an approver's comment for the code from the server's record of a request; empty if there is none."""
    comment = record.get("comment") if isinstance(record, dict) else None
    return comment if isinstance(comment, str) else ""


def _text_of(block: Any) -> str | None:
    source = block.get("resource") if block.get("type") == "resource" else block
    if block.get("type") in ("text", "resource") and isinstance(source, dict) and isinstance(source.get("text"), str):
        return str(source["text"])
    return None


def _convert(value: Any, depth: int) -> Any:
    if depth == 0:
        return value
    if isinstance(value, dict):
        return Record({key: _convert(item, depth - 1) for key, item in value.items()})
    if isinstance(value, list):
        return Records([_convert(item, depth - 1) if isinstance(item, dict | list) else item for item in value])
    return value


def _display(value: Record | Records) -> None:
    """Display the images and audio accompanying structured content, then the content without their data.

    Raises
    ------
    NotImplementedError
        There are none, so IPython displays the value as usual.
    """
    raw: CallResult | None = value.__dict__.get("raw")
    media = [(block, media_of(block, raw)) for block in raw.content] if raw is not None else []
    names = {_data_of(block): repr(shown) for block, shown in media if shown is not None}
    if not names:
        raise NotImplementedError
    Blocks([*(shown for _, shown in media if shown is not None), _named(value, names)])._ipython_display_()


def _data_of(block: Mapping[str, Any]) -> str:
    source = block["resource"] if block.get("type") == "resource" else block
    return str(source.get("data") or source.get("blob"))


def _named(value: Any, names: Mapping[str, str]) -> Any:
    """Return a copy in which the data of each image and audio clip is replaced by a name."""
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    return names.get(value, value) if isinstance(value, str) else value


def _with_raw(value: Any, raw: CallResult) -> Any:
    if value is None or isinstance(value, bool):
        return value
    carrier: Any
    if isinstance(value, dict):
        carrier = Record(value)  # a copy: the whole result must not contain itself
    elif isinstance(value, list):
        carrier = Records(value)
    elif isinstance(value, str):
        carrier = Text(value)
    elif isinstance(value, int):
        carrier = Integer(value)
    else:
        carrier = Number(value)
    carrier.__dict__["raw"] = raw
    return carrier
