"""A plugin for data-apis/array-api-tests: it takes TensorFlow's shapes, and does not make failures smaller."""

import hypothesis
import ndindex.shapetools
import pytest


def tuples_of_shapes(function):
    """Return a function of a shape that takes TensorFlow's `TensorShape`, which is no tuple."""
    return lambda shape, *args, **kwargs: function(
        tuple(shape) if type(shape).__name__ == "TensorShape" else shape, *args, **kwargs
    )


ndindex.shapetools.asshape = tuples_of_shapes(ndindex.shapetools.asshape)


@pytest.hookimpl(trylast=True)
def pytest_configure(config):
    phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
    hypothesis.settings.register_profile("without shrinking", hypothesis.settings(), phases=phases)
    hypothesis.settings.load_profile("without shrinking")
