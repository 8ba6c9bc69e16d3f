"""Keys, made from a seed, a `SeedGenerator` or another key."""

from __future__ import annotations

import functools
import itertools
import os
import sys
import threading
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from multiop import errors
from multiop._call.boundary import boundary
from multiop._loading.registry import active, random_part
from multiop._rules import rerun_state
from multiop._values import args, dtypes, philox
from multiop._values.types import ArrayLike, Tensor
from multiop.frontends.bitwise import op_bitwise_and
from multiop.frontends.conversion import op_cast, op_view
from multiop.frontends.elementwise import op_multiply
from multiop.frontends.logical import op_less
from multiop.frontends.shapes import op_concatenate, op_reshape
from multiop.random import _philox

AT_ONCE = 32  # keys of a generator that are computed together
_lock = threading.Lock()  # shared by all generators: one that held a lock could not be copied or pickled
_names = itertools.count()


class SeedGenerator:
    """A generator of any number of different keys from one seed.

    The functions of `multiop.random` draw the same numbers for the same int or key. A generator passed as `seed` gives
    each call a new key, which depends only on its seed and on how many keys it has already produced. So a program that
    makes the same calls draws the same numbers on every backend. Threads may share a generator: no key is given twice.

    Inside a compiled function (`multiop.jit`, `tf.function`, `jax.jit`), a generator raises an error: the key would
    become a constant of the program, and each call would repeat the draws of the first. Draw `key = generator.next()`
    outside the function and pass the key in. On TensorFlow, this also applies inside `multiop.vmap`.

    Args:
        seed: An int from `-2**63` to `2**64 - 1`; by default the operating system chooses one.
        name: Name of the generator, which has no effect.

    Raises:
        ArgumentError: `seed` does not fit in 64 bits.
        ArgumentTypeError: `seed` is not an int.

    Example:
        >>> import multiop
        >>> generator = multiop.random.SeedGenerator(7)
        >>> first, second = multiop.random.uniform((), seed=generator), multiop.random.uniform((), seed=generator)
        >>> bool(first == second)
        False
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if seed is not None:
            _of_int(seed, "SeedGenerator: seed")
        self.name = f"seed_generator_{next(_names)}" if name is None else name
        self._initial = seed
        self._state = rerun_state.State((_seed_of_system() if seed is None else int(seed), 0))

    @property
    def state(self) -> tuple[int, int]:
        """The seed and the number of keys produced so far; assign them to resume from that point."""
        return self._state.value

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        seed, count = state
        if type(state) is not Turn:  # which is right
            _of_int(seed, "state: the seed")
            seed, count = int(seed), args.count(count, "state: the count")
        self._state.value = seed, count

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_state": self.state}  # a copy made in a function that runs again goes on from there

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, _state=rerun_state.State(state["_state"]))

    def next(self, ordered: bool = True) -> Tensor:
        """Return the next key, which was not produced before.

        Args:
            ordered: Has no effect; accepted because Keras has it.

        Returns:
            Key, a `uint32` tensor of shape `(2,)`.

        Raises:
            ArgumentError: The calling function is being compiled.
        """
        _refuse_tracing("a SeedGenerator")
        return _key(*words_of(take_turn(self)))

    def get_config(self) -> dict[str, Any]:
        """Return the configuration from which `from_config` makes a generator that starts from the beginning."""
        return {"seed": self._initial}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """Return a new generator from what `get_config` returned."""
        return cls(**config)


class _OfNumPy(Protocol):
    @property
    def bit_generator(self) -> Any: ...


class _OfTorch(Protocol):
    def initial_seed(self) -> int: ...


class _OfTensorFlow(Protocol):
    def uniform_full_int(self, shape: Any, /) -> Any: ...


Seed: TypeAlias = int | SeedGenerator | _OfNumPy | _OfTorch | _OfTensorFlow | ArrayLike | None
"""An int, a scalar integer tensor, a key, a generator, or `None` for the process-wide generator."""

_process: rerun_state.State[SeedGenerator | None] = rerun_state.State(None)


def _seed_of_system() -> int:
    if rerun_state.is_running():
        raise errors.ArgumentError(
            "SeedGenerator: seed must be given in a checkpointed function, which would choose another one when it runs "
            "again; or make the generator outside"
        )
    return int.from_bytes(os.urandom(4), "little")


def set_seed(seed: int) -> None:
    """Set the seed of the process-wide generator, from which draws with `seed=None` take their keys.

    Until it is set, the operating system chooses that seed.

    Args:
        seed: An int from `-2**63` to `2**64 - 1`.

    Raises:
        ArgumentError: `seed` does not fit in 64 bits.
        ArgumentTypeError: `seed` is not an int.

    Example:
        >>> import multiop
        >>> multiop.random.set_seed(3)
        >>> x = multiop.random.normal((2,))
        >>> multiop.random.set_seed(3)
        >>> bool(multiop.op_all(x == multiop.random.normal((2,))))
        True
    """
    _of_int(seed, "set_seed: seed")
    _process.value = SeedGenerator(seed)


@boundary
def key(seed: Seed = None) -> Tensor:
    """Return the key of `seed`: every function of `multiop.random` draws the same numbers with either.

    Args:
        seed: An int from `-2**63` to `2**64 - 1`, where a negative int gives the key of the unsigned int with the same
            64 bits; a scalar integer tensor; a key, also one of `jax.random.key` or an integer tensor of shape `(2,)`,
            of which the low words count; a `SeedGenerator`, also one of Keras, which gives its next key; a
            `torch.Generator`, `np.random.Generator` or `tf.random.Generator`, which draws two words, from whose state
            they follow; or `None` for the process-wide generator.

    Returns:
        Key, a `uint32` tensor of shape `(2,)`: the low and the high word of the int. Unlike an int, a key can be an
        argument of a compiled function, and can be batched for `multiop.vmap`.

    Raises:
        ArgumentError: `seed` does not fit in 64 bits, is a tensor of another shape or dtype, or, inside a function that
            is being compiled, is `None` or a generator; or, inside a checkpointed function, a framework's generator.
        ArgumentTypeError: `seed` is none of these.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.random.key(2**32 + 5)).tolist()
        [5, 1]
    """
    return as_key(seed)


@boundary
def split(seed: Seed, num: int = 2) -> Tensor:
    """Derive keys whose draws are independent of each other and of the draws of `seed`.

    Args:
        seed: Anything that `multiop.random.key` takes.
        num: The number of keys.

    Returns:
        `uint32` tensor of shape `(num, 2)`, with one key per row. A key does not depend on `num`.

    Raises:
        ArgumentError: `multiop.random.key` does not take `seed`, or `num` is negative.

    Example:
        >>> import multiop
        >>> keys = multiop.random.split(1, 3)
        >>> x, y = multiop.random.normal((4,), seed=keys[0]), multiop.random.normal((4,), seed=keys[1])
    """
    num = args.count(num, "num")
    found = _philox.block_words(as_key(seed), 4 * num, (0, 0, 0, _philox.SPLIT))
    return op_cast(op_reshape(found, (num, 4))[:, :2], "uint32")


@boundary
def fold_in(seed: Seed, data: ArrayLike) -> Tensor:
    """Derive a key from `seed` and an integer, such as the number of a training step.

    Args:
        seed: Anything that `multiop.random.key` takes.
        data: An int from `-2**63` to `2**64 - 1`, or a scalar integer tensor.

    Returns:
        Key, a `uint32` tensor of shape `(2,)`: a different key for each `data`.

    Raises:
        ArgumentError: `multiop.random.key` does not take `seed`, or `data` does not fit in 64 bits or is not a scalar.
        ArgumentTypeError: `data` is not an integer.

    Example:
        >>> import multiop
        >>> for step in range(2):
        ...     noise = multiop.random.normal((3,), seed=multiop.random.fold_in(42, step))
    """
    of_seed = as_key(seed)
    if isinstance(data, (int, np.integer)) or not hasattr(data, "dtype"):
        low, high = _of_int(data, "data")
    else:
        both = active().on_device_of(of_seed, _of_tensor(data, "data"))
        low, high = both[0], both[1]
    return op_cast(_philox.block_words(of_seed, 4, (low, high, 0, _philox.FOLD))[:2], "uint32")


def key_beside(x: Any, seed: Any) -> Any:
    """Return the key of `seed` on the device of `x`, if that is a tensor; on a host that draws, its turn.

    Draws of a turn are arrays, until `to_tensor` of them.
    """
    draws_on_host = random_part("draws_on_host")
    if draws_on_host is not None and draws_on_host(x):
        if type(seed) is int and -(2**63) <= seed < 2**64:
            return Turn(None, seed & (1 << 64) - 1)
        if seed is None:
            seed = _of_process()
        if type(seed) is SeedGenerator:
            return take_turn(seed)
    key_of_ints = random_part("key_of_ints") if type(seed) is int else None
    key: Any = as_key(seed) if key_of_ints is None else key_of_ints(*_of_int(seed, "seed"))
    key = key if x is None else active().on_device_of(x, key)
    if draws_on_host is None or not draws_on_host(key):
        return key
    low, high = key.tolist()
    return Turn(None, low | high << 32)


def key_of(seed: Any, *values: Any) -> Tensor:
    """Return the key of `seed`, on the device of the first of `values`, as they were given, that is a tensor."""
    return active().on_device_of(first_tensor(*values), as_key(seed))


def first_tensor(*values: Any) -> Any:
    """Return the first of values that is a tensor, `None` if none is."""
    return next(filter(active().op_is_tensor, values), None)


class Turn(NamedTuple):
    """The seed of a generator and the number of its key, which they determine: draws may know the keys that follow.

    Ints as seeds, and keys, are the turns of no generator.
    """

    seed: int | None
    number: int


def take_turn(generator: SeedGenerator) -> Turn:
    """Return the next turn of a generator."""
    with _lock:
        turn = Turn(*generator.state)
        following: Any = Turn(turn.seed, turn.number + 1)
        generator.state = following
    return turn


def words_of(turn: Turn) -> tuple[int, int]:
    """Return the two words of the key of a turn."""
    if turn.seed is None:
        return turn.number & _philox.MASK, turn.number >> 32
    return keys_of(turn.seed, turn.number // AT_ONCE)[turn.number % AT_ONCE]


@functools.lru_cache(16)
def keys_of(seed: int | None, part: int) -> list[tuple[int, int]]:
    """Return the words of successive keys, which take little longer than those of one."""
    first = part * AT_ONCE
    if seed is None:
        return [words_of(Turn(None, first + k)) for k in range(AT_ONCE)]
    counter = first & _philox.MASK, first >> 32, 0, _philox.NEXT
    words = philox.words_on_host((seed & _philox.MASK, seed >> 32 & _philox.MASK), 4 * AT_ONCE, counter).tolist()
    return list(zip(words[::4], words[1::4], strict=True))


def as_key(seed: Any) -> Tensor:
    """Return the key of anything that `multiop.random.key` takes."""
    if type(seed) is int:
        return _key(*_of_int(seed, "seed"))
    if seed is None:
        _refuse_tracing("seed=None")
        return _of_process().next()
    if isinstance(seed, SeedGenerator):
        return seed.next()
    if type(seed) is not int and not hasattr(seed, "dtype"):
        seed = _draw(seed)
    data_of_key = random_part("data_of_key")
    if data_of_key is not None and (data := data_of_key(seed)) is not None:
        seed = data
    if isinstance(seed, (int, np.integer)) or not hasattr(seed, "dtype"):
        return _key(*_of_int(seed, "seed", ", a SeedGenerator, a key or None"))
    if tuple(seed.shape) == (2,) and _name_of(seed) == "uint32":
        return active().convert(seed)
    if hasattr(seed, "shape") and tuple(seed.shape) == (2,) and _name_of(seed) in dtypes.INTEGER:
        return _of_pair(seed)
    return _of_tensor(seed, "seed", "; a key is uint32 of shape (2,), an int has no dimension")


def _draw(seed: Any) -> Any:
    """Return the two words that `seed` draws, if it is a generator of a framework or of Keras, else `seed`."""
    names = [f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in type(seed).__mro__]
    if "keras.SeedGenerator" in names:  # its state is a variable of Keras, which a compiled step updates
        return seed.next()
    if (draw := next((_DRAWS[name] for name in names if name in _DRAWS), None)) is None:
        return seed
    _refuse_tracing("a generator")
    if rerun_state.is_running():
        raise errors.ArgumentError(
            "a generator in a checkpointed function would draw other numbers when that runs again; "
            "draw a key outside, key = multiop.random.key(generator), and pass it to the function"
        )
    return np.asarray(draw(seed)).astype(np.uint32)


_DRAWS: dict[str, Any] = {
    "numpy.Generator": lambda generator: generator.integers(0, 2**32, 2, np.uint32),
    "tensorflow.Generator": lambda generator: generator.uniform_full_int((2,), "uint32"),
    "torch.Generator": lambda generator: (
        sys.modules["torch"].randint(0, 2**32, (2,), generator=generator, device=generator.device).tolist()
    ),
}


def _of_pair(x: Any) -> Tensor:
    """Return the key of two ints of any width, as Keras's generators give them: the low word of each."""
    x = active().convert(x)
    if _name_of(x) in ("int64", "uint64"):
        return op_view(op_reshape(x, (2, 1)), "uint32")[:, 0]
    return op_cast(x, "uint32") if _name_of(x) in dtypes.UNSIGNED else op_view(op_cast(x, "int32"), "uint32")


def _of_process() -> SeedGenerator:
    if _process.shared is None:
        generator = SeedGenerator(int.from_bytes(os.urandom(4), "little"))
        with _lock:
            _process.shared = _process.shared or generator
    return _process.value or _process.shared


def _of_int(value: Any, name: str, others: str = "") -> tuple[int, int]:
    """Return the low and the high word of an int."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise errors.ArgumentTypeError(f"{name} must be an int{others}, got {args.describe(value)}")
    if not -(2**63) <= value < 2**64:
        raise errors.ArgumentError(f"{name} must be from -2**63 to 2**64 - 1, got {value}")
    return int(value) & _philox.MASK, int(value) >> 32 & _philox.MASK


def _key(low: int, high: int) -> Tensor:
    return active().convert([low, high], "uint32")


def _name_of(x: Any) -> str | None:
    try:
        return dtypes.name(x.dtype)
    except errors.DTypeError:
        return None


def _of_tensor(x: Any, name: str, hint: str = "") -> Tensor:
    """Return the low and the high word of a scalar integer tensor."""
    dtype = _name_of(x)
    if dtype not in dtypes.INTEGER or tuple(x.shape) != ():
        raise errors.ArgumentError(f"{name} must be an integer without dimensions, got {args.describe(x)}{hint}")
    if isinstance(x, (np.ndarray, np.generic)):
        return _key(*_of_int(int(x), name))
    x = op_reshape(x, (1,))
    if dtype in ("int64", "uint64"):
        return op_view(x, "uint32")
    if dtype in dtypes.UNSIGNED:
        low = op_cast(x, "uint32")
        return op_concatenate([low, op_bitwise_and(low, 0)])
    x = op_cast(x, "int32")
    return op_view(op_concatenate([x, op_multiply(op_cast(op_less(x, 0), "int32"), -1)]), "uint32")


def _is_tracing() -> bool:
    is_tracing = random_part("is_tracing")
    return is_tracing is not None and is_tracing()


def _refuse_tracing(what: str) -> None:
    if _is_tracing():
        raise errors.ArgumentError(
            f"{what} in a function that is compiled would draw the same numbers at each call; "
            "draw a key outside, key = multiop.random.key(generator), and pass it to the function"
            f"{'; in a layer of Keras, use a keras.random.SeedGenerator' if 'keras' in sys.modules else ''}"
        )
