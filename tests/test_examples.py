"""The examples: each runs on every backend by MULTIOP_BACKEND alone, and gives the same curves on all of them."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import figures
import numpy as np
import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

pytest.importorskip("sklearn")

pytestmark = pytest.mark.tier("full")  # trains networks; `multiop check examples` checks their functions

# example -> the call that gives its results, with quick settings
CALLS = {
    "digits": "digits.train(steps=100)",
    "dropout": "dropout.train(steps=60)",
    "burgers": "burgers.train(steps=15, n_points=64)",
    "lennard_jones": "lennard_jones.run(steps=20, side=2)",
    "lenet": "lenet.train(steps=50, n=64, dtype='float64')",
    "transformer": "transformer.train(steps=50, n=32, dtype='float64')",
}
NETWORKS = ["lenet", "transformer"]


def python(backend, *arguments):
    variables = os.environ | {
        "MULTIOP_BACKEND": backend,
        "PYTHONPATH": os.pathsep.join([str(EXAMPLES), str(EXAMPLES / "gallery"), *filter(None, sys.path)]),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    done = subprocess.run([sys.executable, *arguments], env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@functools.cache
def results(backend, example, dtype="float64"):
    program = f"import json, {example}; print(json.dumps({CALLS[example].replace('float64', dtype)}))"
    return json.loads(python(backend, "-c", program).splitlines()[-1])


@pytest.mark.tier("default")
@pytest.mark.once
def test_log1pexp_prints_the_stable_gradient_and_the_nan(backend):
    lines = python(backend, str(EXAMPLES / "log1pexp.py")).splitlines()
    assert lines[0] == f"backend: {backend}"
    rows = {float(line.split()[0]): [float(word) for word in line.split()[1:]] for line in lines[2:]}
    naive, stable = rows[100.0]
    assert np.isnan(naive)
    assert stable == 1.0
    for x in (-1.0, 0.0, 1.0):
        np.testing.assert_allclose(rows[x], 1 / (1 + np.exp(-x)), atol=1e-6)


@pytest.mark.tier("default")
@pytest.mark.once
def test_a_library_says_what_its_shim_cost(backend):
    shim, library = (EXAMPLES / "transport" / "before.py").read_text(encoding="utf-8").split("# the library\n")
    after = (EXAMPLES / "transport" / "transport.py").read_text(encoding="utf-8")
    lines = [figures.count_code(text) for text in (shim, library, after)]
    said = "The shim of `before.py` has {} lines of code, and the library {}. Here there are {},".format(*lines)
    assert said in " ".join(after.split())


@pytest.mark.tier("default")
@pytest.mark.once
def test_a_page_says_how_long_the_backends_of_libraries_are(backend):
    page = (EXAMPLES.parent / "docs" / "depending.md").read_text(encoding="utf-8")
    for name in ("einops", "autoray", "kymatio"):
        path = EXAMPLES / f"{name}_backend" / f"{name}_multiop.py"
        said = f"[{figures.count_code(path.read_text(encoding='utf-8'))} lines](../{path.relative_to(EXAMPLES.parent)})"
        assert said in page


@pytest.mark.parametrize(
    ("library", "needs"), [("density", "scipy"), ("einops_backend", "einops"), ("transport", "scipy")]
)
def test_a_library_passes_its_own_tests(backend, library, needs):
    pytest.importorskip(needs)
    folder, option = str(EXAMPLES / library), f"--multiop-backends={backend}"
    out = python(backend, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder, option)
    passed = {"density": 5, "einops_backend": 40, "transport": 4}
    assert f"{passed[library]} passed" in out


@pytest.mark.parametrize("example", CALLS)
def test_script_runs_and_says_which_backend(backend, example):
    out = python(backend, str(EXAMPLES / f"{example}.py"), "--steps", "2")
    assert out.startswith(f"backend: {backend}\n")


def test_digits_learns(backend):
    losses = results(backend, "digits")["losses"]
    assert abs(losses[0] - np.log(10)) < 0.5  # ten classes, guessed at random
    assert losses[-1] < 0.1 * losses[0]
    assert results(backend, "digits")["accuracy"] > 0.85


def test_burgers_residual_falls(backend):
    losses = results(backend, "burgers")["losses"]
    assert losses[-1] < 0.9 * losses[0]
    u = np.asarray(results(backend, "burgers")["u"])
    np.testing.assert_allclose(u[[0, -1]], 0.0, atol=1e-6)  # the boundary values are exact by construction


def test_burgers_residual_against_closed_forms(backend):
    """A network with no hidden weights is u = -sin(pi x) + t (1 - x^2) c, whose residual is known."""
    program = (
        "import json, math, numpy, burgers\n"
        "from multiop import ops\n"
        "t, x = numpy.array([0.1, 0.5, 0.9], 'float32'), numpy.array([-0.7, 0.2, 0.6], 'float32')\n"
        "flat = [ops.zeros((2, 3)), ops.zeros((3,)), ops.zeros((3, 1)), ops.convert_to_tensor([1.5])]\n"
        "found = burgers.residual(flat, ops.convert_to_tensor(t), ops.convert_to_tensor(x))\n"
        "u = -numpy.sin(numpy.pi * x) + t * (1 - x * x) * 1.5\n"
        "u_t, u_x = 1.5 * (1 - x * x), -numpy.pi * numpy.cos(numpy.pi * x) - 3 * t * x\n"
        "u_xx = numpy.pi**2 * numpy.sin(numpy.pi * x) - 3 * t\n"
        "known = u_t + u * u_x - burgers.VISCOSITY * u_xx\n"
        "print(json.dumps([ops.convert_to_numpy(found).tolist(), known.tolist()]))"
    )
    found, known = json.loads(python(backend, "-c", program).splitlines()[-1])
    np.testing.assert_allclose(found, known, rtol=1e-5, atol=1e-5)


def test_lennard_jones_against_its_oracles(backend):
    found = results(backend, "lennard_jones")
    scale = np.abs(found["forces"]).max()
    assert scale > 1  # the atoms do push
    assert found["closed_form_error"] < 1e-12 * scale
    assert found["finite_difference_error"] < 1e-7 * scale
    assert found["net_force"] < 1e-12 * scale
    totals = np.asarray(found["totals"])
    assert np.abs(totals - totals[0]).max() < 1e-4 * abs(totals[0])
    assert np.ptp(np.asarray(found["positions"])) > 0


def test_two_atoms_at_the_minimum(backend):
    """The pair potential is -1 at r = 2^(1/6), and its force there is zero."""
    program = (
        "import json, multiop, lennard_jones as lj\n"
        "multiop.enable_x64()\n"
        "x = multiop.op_convert_to_tensor([[0.0, 0.0, 0.0], [2 ** (1 / 6), 0.0, 0.0]], dtype='float64')\n"
        "print(json.dumps([float(lj.energy(x)), multiop.op_convert_to_numpy(lj.forces(x)).tolist()]))"
    )
    energy, forces = json.loads(python(backend, "-c", program).splitlines()[-1])
    np.testing.assert_allclose(energy, -1.0, rtol=1e-14)
    np.testing.assert_allclose(forces, np.zeros((2, 3)), atol=1e-12)


def test_dropout_learns(backend):
    losses = results(backend, "dropout")["losses"]
    assert losses[-1] < 0.5 * losses[0]
    assert results(backend, "dropout")["accuracy"] > 0.8


@pytest.mark.cross
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
def test_dropout_has_the_same_curve_everywhere(other):
    here, there = results("torch", "dropout"), results(other, "dropout")
    np.testing.assert_allclose(there["losses"], here["losses"], rtol=0, atol=1e-4)
    assert there["accuracy"] == here["accuracy"]


@pytest.mark.cross
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
def test_digits_has_the_same_curve_everywhere(other):
    here, there = results("torch", "digits"), results(other, "digits")
    np.testing.assert_allclose(there["losses"], here["losses"], rtol=0, atol=1e-5)
    assert there["accuracy"] == here["accuracy"]


@pytest.mark.cross
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
def test_burgers_has_the_same_curve_everywhere(other):
    here, there = results("torch", "burgers"), results(other, "burgers")
    np.testing.assert_allclose(there["losses"], here["losses"], rtol=1e-4)
    np.testing.assert_allclose(there["u"], here["u"], atol=1e-4)


@pytest.mark.cross
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
def test_lennard_jones_is_the_same_everywhere(other):
    here, there = results("torch", "lennard_jones"), results(other, "lennard_jones")
    np.testing.assert_allclose(there["energy"], here["energy"], rtol=1e-12)
    np.testing.assert_allclose(there["forces"], here["forces"], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(there["totals"], here["totals"], rtol=1e-10)
    np.testing.assert_allclose(there["positions"], here["positions"], atol=1e-9)


@pytest.mark.cross
@pytest.mark.parametrize("example", NETWORKS)
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
def test_networks_have_the_same_gradients_and_curves_everywhere(example, other):
    here, there = results("torch", example), results(other, example)
    assert here["losses"][-1] < here["losses"][0] / 2
    np.testing.assert_allclose(there["losses"], here["losses"], rtol=0, atol=1e-9)
    assert set(there["gradient"]) == set(here["gradient"])
    for name, gradient in here["gradient"].items():
        np.testing.assert_allclose(there["gradient"][name], gradient, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.cross
@pytest.mark.parametrize("example", NETWORKS)
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
def test_networks_in_single_precision_agree_to_units_in_the_last_place(example, other):
    here, there = results("torch", example, "float32"), results(other, example, "float32")
    unit = np.finfo(np.float32).eps
    np.testing.assert_allclose(there["losses"][0], here["losses"][0], rtol=4 * unit)
    assert set(there["gradient"]) == set(here["gradient"])
    for name, gradient in here["gradient"].items():
        allowed = 32 * unit * np.abs(gradient).max()
        np.testing.assert_allclose(there["gradient"][name], gradient, rtol=0, atol=allowed, err_msg=name)
    allowed = 256 * unit * here["losses"][0]  # fifty steps, each of which starts from rounding errors
    np.testing.assert_allclose(there["losses"], here["losses"], rtol=0, atol=allowed)


GALLERY = {  # example -> the call that gives its results, with quick settings
    "implicit": "implicit.run()",
    "physics": "physics.run(500)",
    "molecule": "molecule.run(5)",
    "ode": "ode.run(40)",
    "flow": "flow.run(100)",
    "reaction": "reaction.run(16, 2)",
    "bundle": "bundle.run(6, 30, 6)",
    "sparsemax": "sparsemax.run(9)",
    "quantizer": "quantizer.run(200)",
    "densities": "densities.run(300)",
}


@functools.cache
def shown(backend, example):
    program = f"import json, {example}; print(json.dumps({GALLERY[example]}))"
    return json.loads(python(backend, "-c", program).splitlines()[-1])


@pytest.mark.tier("default")
def test_examples_of_the_gallery_are_short():
    for example in GALLERY:
        text = (EXAMPLES / "gallery" / f"{example}.py").read_text(encoding="utf-8")
        assert text.count("\n") <= 80
        assert f"../examples/gallery/{example}.py" in (EXAMPLES.parent / "docs/gallery.md").read_text(encoding="utf-8")


def test_the_fixed_point_is_one_and_its_gradient_that_of_finite_differences(backend):
    found, rng = shown(backend, "implicit"), np.random.default_rng(0)
    w, x = 0.3 * rng.normal(size=(4, 4)), rng.normal(size=(1, 4))
    assert found["errors"][-1] < 1e-6

    def total(x):
        z = np.zeros_like(x)
        for _ in range(200):
            z = np.tanh(z @ w + x)
        return z.sum()

    slopes = [(total(x + 1e-5 * e) - total(x - 1e-5 * e)) / 2e-5 for e in np.eye(4)]
    np.testing.assert_allclose(found["gradient"], slopes, rtol=1e-4)


def test_the_pendulum_swings_as_its_equation_says(backend):
    from scipy.integrate import solve_ivp

    exact = solve_ivp(lambda t, y: [y[1], -np.sin(y[0])], (0, 3), [1, 0], t_eval=np.linspace(0, 3, 61), rtol=1e-9)
    found = shown(backend, "physics")
    assert found["losses"][-1] < 1e-3 * found["losses"][0]
    np.testing.assert_allclose(found["u"], exact.y[0], atol=0.02)


def test_the_molecule_vibrates_in_three_modes_and_is_drawn_back(backend):
    found = shown(backend, "molecule")
    slopes = np.gradient(found["energies"], found["lengths"])
    np.testing.assert_allclose(found["forces"][1:-1], -slopes[1:-1], rtol=1e-3, atol=1)
    assert max(found["wavenumbers"][:6]) < 5
    assert 1300 < found["wavenumbers"][6] < 1600  # the bend
    assert 3500 < found["wavenumbers"][7] < found["wavenumbers"][8] < 3800


def test_the_path_fits(backend):
    found = shown(backend, "ode")
    assert found["losses"][-1] < 0.01 * found["losses"][0]
    np.testing.assert_allclose(found["rates"], [1.1, 0.4, 0.1, 0.4], rtol=0.15)


def test_the_flow_is_a_density(backend):
    found = shown(backend, "flow")
    assert found["losses"][-1] < found["losses"][0] - 0.3
    share = np.exp(found["grid"]).sum() * (4 / 39) ** 2
    assert 0.85 < share < 1.02  # of what is on the grid


def test_the_reaction_takes_implicit_steps(backend):
    from scipy.ndimage import laplace
    from scipy.optimize import newton_krylov

    found = shown(backend, "reaction")
    assert found["products"] == 9 and found["entries"] < 7 * 2 * 16**2
    u, v = np.ones((16, 16)), np.zeros((16, 16))
    u[6:8, 6:9], v[6:8, 6:9] = 0.5, 0.25

    def change(u, v):
        spread = [rate / 256 * laplace(w, mode="nearest") for rate, w in ((16, u), (8, v))]
        return np.stack([spread[0] - u * v * v + 0.04 * (1 - u), spread[1] + u * v * v - 0.1 * v])

    state = np.stack([u, v])
    for _ in range(2):
        state = newton_krylov(
            lambda new, old=state: new - old - 20 * change(*new), state, method="gmres", inner_rtol=1e-8, f_tol=1e-9
        )
    np.testing.assert_allclose(found["state"], state[1], atol=1e-4)


def test_cameras_and_points_fit_what_was_seen(backend):
    """The oracle turns points by SciPy's rotations."""
    from scipy.spatial.transform import Rotation

    found, rng = shown(backend, "bundle"), np.random.default_rng(0)
    cameras, points = 0.3 * rng.normal(size=(6, 6)), rng.normal(size=(30, 3))
    camera, point = np.nonzero(rng.uniform(size=(6, 30)) < 0.6)

    def project(cameras, points):
        x = Rotation.from_rotvec(cameras[camera, :3]).apply(points[point]) + cameras[camera, 3:]
        return x[:, :2] / (x[:, 2:] + 8.0)

    guess = [x + 0.1 * rng.normal(size=x.shape) for x in (cameras, points)]
    first = np.sqrt(np.mean((project(*guess) - project(cameras, points)) ** 2))
    np.testing.assert_allclose(found["errors"][0], first, rtol=1e-4)
    assert found["errors"][-1] < 1e-4 * first
    assert found["entries"] == [16 * len(camera)] and found["products"] == [8]


def test_sparsemax_of_two_scores_is_a_ramp(backend):
    found = shown(backend, "sparsemax")
    ramp = np.clip((np.array(found["x"]) + 1) / 2, 0, 1)
    np.testing.assert_allclose(found["sparsemax"], ramp, atol=1e-6)
    np.testing.assert_allclose(found["gradient"], ramp - 1, atol=1e-6)


def test_quantized_weights_have_seven_levels_and_fit(backend):
    found = shown(backend, "quantizer")
    assert found["losses"][-1] < 0.1 * found["losses"][0]
    levels = np.array(found["levels"]) / found["scale"][0]
    np.testing.assert_allclose(levels, np.round(levels), atol=1e-5)
    assert np.abs(levels).max() < 3.01


def test_wild_samples_do_not_move_the_centre(backend):
    from scipy import stats

    found, rng = shown(backend, "densities"), np.random.default_rng(0)
    x = np.concatenate([rng.normal(1, 0.5, size=80), rng.normal(8, 1, size=8)])
    freedom, mean, scale = stats.t.fit(x)
    np.testing.assert_allclose(found["student"], [mean, scale, freedom], rtol=0.02)
    assert found["normal"][0] > 1.5


@pytest.mark.cross
@pytest.mark.parametrize("other", ["jax", "tensorflow"])
@pytest.mark.parametrize("example", GALLERY)
def test_the_gallery_is_the_same_everywhere(example, other):
    here, there = shown("torch", example), shown(other, example)
    for name in here:
        scale = np.abs(here[name]).max()
        first = slice(20) if name == "losses" else slice(None)  # later steps amplify the last digits
        mine, theirs = (np.atleast_1d(found[name])[first] for found in (here, there))
        np.testing.assert_allclose(theirs, mine, atol=2e-2 * scale, err_msg=name)


MEMORY = """
import gc
import adam, physics
kept = []
def count():
    gc.collect()
    return sum(type(x).__name__ in ("Tensor", "EagerTensor", "ArrayImpl", "Traced") for x in gc.get_objects())
plain = float
adam.float = lambda x: (kept.append(count()), plain(x))[1]
physics.run(30)
print(kept[5], kept[-1])
"""


def test_training_holds_as_many_tensors_at_each_step(backend):
    early, late = map(int, python(backend, "-c", MEMORY).split()[-2:])
    assert early == late
