"""The names that the analysis knows: modules, functions, attributes and commands, and what each of them can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: With what the names of `os.exec…` and `os.spawn…` end.
_ENDS: Final = ("l", "le", "lp", "lpe", "v", "ve", "vp", "vpe")

#: Dotted name, or the beginning of one -> code and message. The longest that fits counts.
NAMES: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(
        ("__import__", "importlib", "imp", "runpy", "pkgutil", "zipimport", "sys.modules", "sys.meta_path", "sys.path"),
        ("AB101", "imports modules by a computed name, or changes where they come from"),
    ),
    **dict.fromkeys(
        ("eval", "exec", "compile", "builtins", "__builtins__", "code", "codeop", "marshal", "types.CodeType"),
        ("AB102", "runs code that is generated at run time"),
    ),
    **dict.fromkeys(("dill", "cloudpickle"), ("AB102", "creates objects from data, which can run code")),
    **dict.fromkeys(
        ("globals", "locals", "vars", "operator.attrgetter", "operator.methodcaller"),
        ("AB103", "accesses computed names"),
    ),
    **dict.fromkeys(
        (
            *("IPython", "ipykernel", "traitlets", "jupyter_agentbox.kernel", "jupyter_agentbox.headless"),
            *("jupyter_agentbox.protocol", "jupyter_agentbox.services", "jupyter_agentbox.storage"),
        ),
        ("AB104", "accesses the program that runs the code"),
    ),
    **dict.fromkeys(
        (
            *("jupyter_agentbox.Agent", "jupyter_agentbox.AsyncAgent", "jupyter_agentbox.CodeExecutor"),
            *("jupyter_agentbox.CodeService", "jupyter_agentbox.KernelGateway"),
        ),
        ("AB104", "starts agents or kernels of its own"),
    ),
    **dict.fromkeys(
        ("ctypes", "cffi", "gc", "sys.settrace", "sys.setprofile", "sys._getframe", "inspect.currentframe", "_ctypes"),
        ("AB104", "bypasses Python's own rules"),
    ),
    **dict.fromkeys(
        ("os.remove", "os.unlink", "os.rmdir", "os.removedirs", "os.truncate", "shutil.rmtree", "send2trash"),
        ("AB201", "deletes files"),
    ),
    **dict.fromkeys(
        (
            *("os.rename", "os.renames", "os.replace", "os.chmod", "os.link", "os.symlink", "os.mkdir", "os.makedirs"),
            "shutil",
        ),
        ("AB202", "changes files"),
    ),
    **dict.fromkeys(
        (
            *("socket", "socketserver", "ssl", "urllib.request", "urllib3", "http.client", "http.server", "ftplib"),
            *("smtplib", "imaplib", "poplib", "telnetlib", "xmlrpc", "requests", "httpx", "httpx2", "aiohttp"),
            *("websocket", "websockets", "paramiko", "fabric", "pycurl", "boto3", "grpc", "zmq", "webbrowser"),
        ),
        ("AB203", "uses the network"),
    ),
    **dict.fromkeys(
        ("os.environ", "os.environb", "os.getenv", "os.putenv", "os.unsetenv", "dotenv", "getpass", "keyring"),
        ("AB204", "reads or changes environment variables or secrets"),
    ),
    **dict.fromkeys(
        (
            *("subprocess", "os.system", "os.popen", "os.fork", "os.forkpty", "os.kill", "os.killpg", "os.startfile"),
            *("os.posix_spawn", "os.posix_spawnp", "pty", "multiprocessing", "asyncio.create_subprocess_exec"),
            *("asyncio.create_subprocess_shell", "concurrent.futures.ProcessPoolExecutor", "pexpect", "sh", "plumbum"),
            *(f"os.{kind}{end}" for kind in ("exec", "spawn") for end in _ENDS),
        ),
        ("AB205", "starts or ends processes"),
    ),
    **dict.fromkeys(("threading", "_thread", "signal", "atexit"), ("AB209", "leaves something that runs later")),
}  # fmt: skip

#: Method, whatever it belongs to -> code and message.
METHODS: Final[Mapping[str, tuple[str, str]]] = {
    **dict.fromkeys(("unlink", "rmdir", "rmtree"), ("AB201", "deletes files")),
    **dict.fromkeys(("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to"), ("AB202", "changes files")),
    **dict.fromkeys(
        (
            "run_cell",
            "run_cell_async",
            "run_code",
            "run_ast_nodes",
            "safe_execfile",
            "ex",
            "ev",
            "runcode",
            "runsource",
        ),
        ("AB102", "runs code that is generated at run time"),
    ),
    **dict.fromkeys(
        ("to_csv", "to_excel", "to_hdf", "to_parquet", "to_pickle", "to_sql", "savefig"), ("AB202", "writes files")
    ),
    "read_pickle": ("AB102", "creates objects from a file, which can run code"),
    "import_module": ("AB101", "imports modules by a computed name"),
    "load_module": ("AB101", "imports modules by a computed name"),
    "exec_module": ("AB101", "imports modules by a computed name"),
}

#: Attributes by which code gets from any value to everything that is loaded.
INTERNALS: Final = frozenset(
    {
        *("__class__", "__bases__", "__base__", "__mro__", "mro", "__subclasses__", "__globals__", "__builtins__"),
        *(
            "get_ipython",
            "__code__",
            "__closure__",
            "__loader__",
            "__spec__",
            "__dict__",
            "__getattribute__",
            "__self__",
            "__func__",
        ),
        *("__reduce__", "__reduce_ex__", "__import__", "f_globals", "f_locals", "f_back", "f_builtins", "gi_frame"),
        *("cr_frame", "ag_frame", "tb_frame", "tb_next", "__traceback__", "__wrapped__", "user_ns", "user_global_ns"),
        *("input_transformers_cleanup", "input_transformers_post", "ast_transformers", "input_transformer_manager"),
    }
)
#: Modules below one that is known, of which nothing is to be said.
UNKNOWN_BELOW: Final = frozenset({"IPython.display"})
#: Begin addresses outside.
ADDRESSES: Final = ("http://", "https://", "ftp://", "ftps://", "s3://", "gs://", "ssh://", "ws://", "wss://")
#: IPython's names for what ``!``, ``!!`` and the script magics become.
SHELL_CALLS: Final = frozenset({"system", "getoutput", "getoutputerror"})
SHELL_MAGICS: Final = frozenset(
    {"sx", "system", "bash", "sh", "script", "perl", "ruby", "cmd", "pip", "conda", "mamba", "micromamba", "uv", "cd"}
    | {"rm", "rmdir", "mv", "cp", "ls", "mkdir", "cat", "python", "python2", "python3", "pypy", "javascript", "js"}
)
#: Line magics that show something and do nothing else, if their arguments are plain words.
HARMLESS_MAGICS: Final = frozenset(
    {"matplotlib", "precision", "pprint", "who", "whos", "who_ls", "pinfo", "pinfo2", "pwd"}
)
#: Words with which the names of tools begin, or end, that change something.
WRITING_VERBS: Final = frozenset(
    {
        *("add", "append", "apply", "approve", "archive", "assign", "book", "buy", "cancel", "change", "charge"),
        *("clear", "close", "commit", "copy", "create", "delete", "deploy", "destroy", "disable", "drop", "edit"),
        *("enable", "exec", "execute", "insert", "invite", "kill", "merge", "modify", "move", "order", "patch"),
        *("pay", "post", "publish", "purge", "push", "put", "refund", "register", "remove", "rename", "replace"),
        *("reset", "restart", "restore", "revoke", "run", "save", "schedule", "send", "set", "share", "start"),
        *("stop", "store", "submit", "sync", "terminate", "transfer", "trigger", "truncate", "uninstall", "update"),
        *("upload", "upsert", "withdraw", "write"),
    }
)
BUILTINS: Final = frozenset({"__import__", "eval", "exec", "compile", "__builtins__", "globals", "locals", "vars"})
#: Functions that take the name of an attribute.
BY_NAME: Final = frozenset({"getattr", "setattr", "delattr", "hasattr"})
#: Where the modules of tools are.
TOOLS: Final = ("jupyter_agentbox.tools", "mcptools")
