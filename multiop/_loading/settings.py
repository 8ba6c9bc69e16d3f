"""Where settings come from: an environment variable, else the configuration file; and three that are kept here."""

from __future__ import annotations

import functools
import os
import stat
import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from multiop import errors
from multiop._loading import imports
from multiop._loading.suggestions import similar

if TYPE_CHECKING:
    from pathlib import Path

VARIABLES = {  # the key in the file -> the environment variable
    "backend": "MULTIOP_BACKEND",
    "floatx": "MULTIOP_FLOATX",
    "x64": "MULTIOP_X64",
    "narrowing": "MULTIOP_NARROWING",
    "kernels": "MULTIOP_KERNELS",
    "tensorflow_numpy": "MULTIOP_TENSORFLOW_NUMPY",
    "full_tracebacks": "MULTIOP_FULL_TRACEBACKS",
}
FLOAT_TYPES = ("float16", "bfloat16", "float32", "float64")
_LARGEST = 1 << 20  # bytes of a configuration file

floatx: str | None = None  # None until first asked for or set
x64: bool | None = None  # what was asked for; JAX, while it is imported, has its own switch
narrowing: bool | None = None


def config_path() -> Path:
    """Return the path of the configuration file, whether or not it exists.

    Raises:
        ArgumentError: An environment variable names the home folder of a user that does not exist.
    """
    from pathlib import Path  # a twentieth of the time that `import multiop` takes

    return Path(_path())


def _path() -> str:
    if path := os.environ.get("MULTIOP_CONFIG"):
        return _expand_home("MULTIOP_CONFIG", path)
    if folder := os.environ.get("XDG_CONFIG_HOME"):
        return os.path.join(_expand_home("XDG_CONFIG_HOME", folder), "multiop", "config.toml")
    return os.path.join(os.path.expanduser("~/.config"), "multiop", "config.toml")  # a process may have no home


def _expand_home(variable: str, path: str) -> str:
    found = os.path.expanduser(path)
    if found.startswith("~"):
        raise errors.ArgumentError(f"{variable}={path!r}: there is no such home folder")
    return found


@functools.cache
def _file() -> dict[str, Any]:
    path = _path()
    try:
        status = os.stat(path)
        if path == os.devnull:
            return {}
        if not stat.S_ISREG(status.st_mode):  # reading a pipe may never end
            raise errors.ArgumentError(f"configuration file {path!r}: it is not a regular file")
        if status.st_size > _LARGEST:
            raise errors.ArgumentError(f"configuration file {path!r}: it has more than {_LARGEST} bytes")
        with open(path, encoding="utf-8-sig") as file:
            text = file.read()
        import tomllib  # a twentieth of the time that `import multiop` takes, and most users have no file

        settings = tomllib.loads(text)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise errors.ArgumentError(f"configuration file {path!r} cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise errors.ArgumentError(f"{path} is not valid TOML for settings: it is nested too deeply") from error
    except errors.ArgumentError:
        raise
    except ValueError as error:  # not TOML, not text, or a number of thousands of digits
        raise errors.ArgumentError(f"{path} is not valid TOML: {error}") from error
    if unknown := set(settings) - set(VARIABLES):
        told = f"unknown setting {min(unknown)!r}; known: {', '.join(VARIABLES)}{similar(min(unknown), VARIABLES)}"
        raise errors.ArgumentError(f"{path}: {told}")
    return settings


@functools.cache
def _warn_of_unknown() -> None:
    """Name what the environment has that looks like a setting and is none, once."""
    known = [*VARIABLES.values(), "MULTIOP_CONFIG"]
    for name in sorted(os.environ):
        if name.startswith("MULTIOP_") and name not in known:
            warnings.warn(f"{name} is ignored: multiop reads {', '.join(known)}", stacklevel=2)


def given_value(key: str) -> Any:
    """Return a setting as the environment or the file has it; `None` if neither does."""
    _warn_of_unknown()
    return os.environ.get(VARIABLES[key]) or _file().get(key)


def source(key: str) -> str:
    """Return what gives a setting that is given, in words."""
    return VARIABLES[key] if os.environ.get(VARIABLES[key]) else "the configuration file"


def flag(key: str, default: bool = False) -> bool:
    """Return a setting that is on or off."""
    value = given_value(key)
    if value is None:
        return default
    text = str(value).strip().lower()
    if text in ("1", "true", "yes", "on"):
        return True
    if text in ("0", "false", "no", "off", ""):
        return False
    raise errors.ArgumentError(f"{VARIABLES[key]} (or {key} in the configuration file) must be 0 or 1, got {value!r}")


def uses_kernels() -> bool:
    """Say whether backends take their kernels: without them, each op is computed as `ops/` says."""
    return flag("kernels", True)


def set_floatx(dtype: str) -> None:
    """Set the dtype that Python floats get if nothing else determines it."""
    global floatx
    if not isinstance(dtype, str) or dtype not in FLOAT_TYPES:  # an array has no one answer
        raise errors.ArgumentError(f"set_floatx: dtype must be one of {', '.join(FLOAT_TYPES)}; got {dtype!r}")
    floatx = dtype


def settle_floatx() -> None:
    """Set that dtype from outside, unless it is set."""
    if floatx is None:
        set_floatx(str(given_value("floatx") or "float32"))


def set_narrowing(enable: bool) -> None:
    """Turn narrowing on or off."""
    global narrowing
    narrowing = enable


def settle_narrowing() -> None:
    """Turn narrowing on or off from outside, unless it has been."""
    if narrowing is None:
        set_narrowing(flag("narrowing"))


def set_x64(enable: bool) -> None:
    """Turn the 64-bit mode on or off, and JAX's switch with it."""
    global x64
    if "jax" in sys.modules or enable or x64:
        imports.when_imported("jax", _switch_jax(enable))
    x64 = enable


def settle_x64() -> None:
    """Turn the 64-bit mode on or off from outside, unless it has been: if it is off, JAX's switch is left as it is."""
    global x64
    if x64 is None and flag("x64"):
        set_x64(True)
    elif x64 is None:
        x64 = False


def _switch_jax(enable: bool) -> Callable[[Any], None]:
    def switch(jax: Any) -> None:
        if jax.config.jax_enable_x64 == enable:
            return
        if imports.is_jax_tracing():
            raise errors.ArgumentError(
                "the 64-bit mode cannot be turned on or off inside a function that JAX traces, of which a part would "
                "have other dtypes; import multiop, or call multiop.enable_x64, before"
            )
        jax.config.update("jax_enable_x64", enable)

    return switch
