"""A loop whose state would change its dtype: the same error on every backend, where or before the state changes."""

import numpy as np
import pytest

import multiop as mo
from multiop import errors

X = np.array([1.0, 2.0, 3.0], np.float32)
LOOPS = {
    "op_scan": (lambda add: mo.op_scan(lambda c, x: (add(c, x), c), 0, mo.op_convert_to_tensor(X)), "init"),
    "op_while_loop": (lambda add: mo.op_while_loop(lambda k: k < 3, lambda k: add(k, 1.0), 0), "loop_vars"),
    "op_fori_loop": (lambda add: mo.op_fori_loop(0, 3, lambda i, k: add(k, 0.5), 0), "init_val"),
}


@pytest.mark.parametrize("op", LOOPS)
def test_a_loop_that_changes_a_dtype_says_so(backend, op):
    loop, state = LOOPS[op]
    for add in (mo.op_add, lambda x, y: x + y):
        for run in (loop, lambda add, loop=loop: mo.jit(lambda x: loop(add))(X)):
            with pytest.raises(errors.ArgumentError, match=f"^{op}: .* where {state} has .*int32"):
                run(add)


def test_a_python_int_is_a_carry(backend):
    last, sums = mo.op_scan(lambda c, x: (c + x, c), 0, mo.op_convert_to_tensor(np.array([1, 2, 3], np.int32)))
    assert int(last) == 6 and mo.op_convert_to_numpy(sums).tolist() == [0, 1, 3]
