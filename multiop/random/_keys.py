"""Keys, and what one is made of: a seed, a generator of seeds, or another key."""

from __future__ import annotations

import itertools
import os
import threading
from typing import Any, TypeAlias

import numpy as np

from multiop import _args, _dtypes, errors
from multiop._boundary import boundary
from multiop._registry import active
from multiop._types import ArrayLike, Tensor
from multiop.frontends.bitwise import op_bitwise_and
from multiop.frontends.conversion import op_cast, op_view
from multiop.frontends.elementwise import op_multiply
from multiop.frontends.logical import op_less
from multiop.frontends.shapes import op_concatenate, op_reshape
from multiop.random import _philox

_lock = threading.Lock()  # of every generator: one of its own could not be copied or pickled
_names = itertools.count()


class SeedGenerator:
    """Keys for as many draws as are wanted, each another one, from one seed.

    The functions of `multiop.random` draw the same numbers for the same int or key. A generator given as `seed` gives
    each call a new key: that of its seed and of how many it has given before. So the draws of a program that makes the
    same calls are the same on every backend. Threads may share one: each key is given once.

    In a function that is compiled (`multiop.jit`, `tf.function`, `jax.jit`), it raises: the key would become a part of
    the program, and each call would repeat the draws of the first. Draw `key = generator.next()` outside, and pass it
    on. On TensorFlow this holds inside `multiop.vmap` too.

    Args:
        seed: An int from `-2**63` to `2**64 - 1`; by default the operating system chooses one.
        name: Name, of no consequence.

    Raises:
        ArgumentError: `seed` does not fit in 64 bits.
        ArgumentTypeError: `seed` is no int.

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
        self._seed = int.from_bytes(os.urandom(4), "little") if seed is None else int(seed)
        self._count = 0

    @property
    def state(self) -> tuple[int, int]:
        """The seed, and how many keys it has given: assign it to go on from there."""
        return self._seed, self._count

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        seed, count = state
        _of_int(seed, "state: the seed")
        self._seed, self._count = int(seed), _args.count(count, "state: the count")

    def next(self, ordered: bool = True) -> Tensor:
        """Return a key that was not given before.

        Args:
            ordered: Of no consequence; Keras has it.

        Returns:
            Key, a `uint32` tensor of shape `(2,)`.

        Raises:
            ArgumentError: The function that calls it is being compiled.
        """
        _refuse_tracing("a SeedGenerator")
        with _lock:
            number, self._count = self._count, self._count + 1
        of_seed = _of_int(self._seed, "seed")
        return _key(*_philox.block_of_ints((number & _philox.MASK, number >> 32, 0, _philox.NEXT), of_seed)[:2])

    def get_config(self) -> dict[str, Any]:
        """Return what `from_config` makes a generator of, which begins anew."""
        return {"seed": self._initial}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """Return a new generator."""
        return cls(**config)


Seed: TypeAlias = int | SeedGenerator | ArrayLike | None
"""An int, an integer tensor without dimensions, a key, a generator, or `None` for that of the process."""

_generator: SeedGenerator | None = None


def set_seed(seed: int) -> None:
    """Begin the draws without a seed, `seed=None`, anew.

    They come from one generator of the process, which begins at a seed that the operating system chooses.

    Args:
        seed: An int from `-2**63` to `2**64 - 1`.

    Raises:
        ArgumentError: `seed` does not fit in 64 bits.
        ArgumentTypeError: `seed` is no int.

    Example:
        >>> import multiop
        >>> multiop.random.set_seed(3)
        >>> x = multiop.random.normal((2,))
        >>> multiop.random.set_seed(3)
        >>> bool(multiop.op_all(x == multiop.random.normal((2,))))
        True
    """
    global _generator
    _of_int(seed, "set_seed: seed")
    _generator = SeedGenerator(seed)


@boundary
def key(seed: Seed = None) -> Tensor:
    """Return the key of `seed`, with which every function of `multiop.random` draws the numbers that `seed` stands for.

    Args:
        seed: An int from `-2**63` to `2**64 - 1`, where a negative one is that of the same 64 bits; an integer tensor
            without dimensions; a key; a `SeedGenerator`, which gives its next one; `None`, for the generator of the
            process.

    Returns:
        Key, a `uint32` tensor of shape `(2,)`: the low and the high word of the int. Unlike an int, it may be an
        argument of a compiled function, and have an axis for `multiop.vmap`.

    Raises:
        ArgumentError: `seed` does not fit in 64 bits, is a tensor of another shape or dtype, or would have to be drawn
            in a function that is compiled.
        ArgumentTypeError: `seed` is nothing of these.

    Example:
        >>> import multiop
        >>> multiop.op_convert_to_numpy(multiop.random.key(2**32 + 5)).tolist()
        [5, 1]
    """
    return as_key(seed)


@boundary
def split(seed: Seed, num: int = 2) -> Tensor:
    """Return keys whose numbers have nothing to do with each other, nor with those of `seed`.

    Args:
        seed: What `multiop.random.key` takes.
        num: How many.

    Returns:
        `uint32` tensor of shape `(num, 2)`: a key in each row, which does not depend on `num`.

    Raises:
        ArgumentError: `seed` is no such thing, or `num` is negative.

    Example:
        >>> import multiop
        >>> keys = multiop.random.split(1, 3)
        >>> x, y = multiop.random.normal((4,), seed=keys[0]), multiop.random.normal((4,), seed=keys[1])
    """
    num = _args.count(num, "num")
    found = _philox.block_words(as_key(seed), 4 * num, (0, 0, 0, _philox.SPLIT))
    return op_cast(op_reshape(found, (num, 4))[:, :2], "uint32")


@boundary
def fold_in(seed: Seed, data: ArrayLike) -> Tensor:
    """Return the key of a key and a number, such as that of a step: other numbers for each.

    Args:
        seed: What `multiop.random.key` takes.
        data: An int from `-2**63` to `2**64 - 1`, or an integer tensor without dimensions.

    Returns:
        Key, a `uint32` tensor of shape `(2,)`.

    Raises:
        ArgumentError: `seed` is no such thing, or `data` does not fit in 64 bits, or has dimensions.
        ArgumentTypeError: `data` is no integer.

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


def as_key(seed: Any) -> Tensor:
    """Return what stands for a key as one."""
    if seed is None:
        _refuse_tracing("seed=None")
        return _of_process().next()
    if isinstance(seed, SeedGenerator):
        return seed.next()
    if isinstance(seed, (int, np.integer)) or not hasattr(seed, "dtype"):
        return _key(*_of_int(seed, "seed", ", a SeedGenerator, a key or None"))
    if tuple(seed.shape) == (2,) and _name_of(seed) == "uint32":
        return active().convert(seed)
    return _of_tensor(seed, "seed", "; a key is uint32 of shape (2,), an int has no dimension")


def _of_process() -> SeedGenerator:
    global _generator
    if _generator is None:
        generator = SeedGenerator()
        with _lock:
            _generator = _generator or generator
    return _generator


def _of_int(value: Any, name: str, others: str = "") -> tuple[int, int]:
    """Return the low and the high word of an int."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise errors.ArgumentTypeError(f"{name} must be an int{others}, got {_args.describe(value)}")
    if not -(2**63) <= value < 2**64:
        raise errors.ArgumentError(f"{name} must be from -2**63 to 2**64 - 1, got {value}")
    return int(value) & _philox.MASK, int(value) >> 32 & _philox.MASK


def _key(low: int, high: int) -> Tensor:
    return active().convert([low, high], "uint32")


def _name_of(x: Any) -> str | None:
    try:
        return _dtypes.name(x.dtype)
    except errors.DTypeError:
        return None


def _of_tensor(x: Any, name: str, hint: str = "") -> Tensor:
    """Return the low and the high word of an integer tensor without dimensions."""
    dtype = _name_of(x)
    if dtype not in _dtypes.INTEGER or tuple(x.shape) != ():
        raise errors.ArgumentError(f"{name} must be an integer without dimensions, got {_args.describe(x)}{hint}")
    if isinstance(x, (np.ndarray, np.generic)):
        return _key(*_of_int(int(x), name))
    x = op_reshape(x, (1,))
    if dtype in ("int64", "uint64"):
        return op_view(x, "uint32")
    if dtype in _dtypes.UNSIGNED:
        low = op_cast(x, "uint32")
        return op_concatenate([low, op_bitwise_and(low, 0)])
    x = op_cast(x, "int32")
    return op_view(op_concatenate([x, op_multiply(op_cast(op_less(x, 0), "int32"), -1)]), "uint32")


def _refuse_tracing(what: str) -> None:
    is_tracing = getattr(active(), "is_tracing", None)
    if is_tracing is not None and is_tracing():
        raise errors.ArgumentError(
            f"{what} in a function that is compiled would draw the same numbers at each call; "
            "draw a key outside, key = generator.next(), and pass it to the function"
        )
