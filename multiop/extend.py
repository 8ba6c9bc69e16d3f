"""The door for code outside of the core: what a backend, a suite or a porter of your own may take from multiop.

Each name stands on one line, with what it is for. `help(multiop.extend.NAME)` says more. What is not here, and not a
public name of `multiop`, may change in any release.
"""

from multiop._loading import (
    built_in as _built_in,
    contract as _contract,
    known_faults as _known_faults,
    registry as _registry,
    settings as _settings,
    suggestions as _suggestions,
    versions as _versions,
)
from multiop._values import args as _args, dtypes as _dtypes, foreign as _foreign, host as _host, tree as _tree
from multiop.autodiff._transformed import Transformed as _Transformed

# what a backend is, as classes of typing
Backend = _contract.Backend  # what each backend must define
OptionalMembers = _contract.Optional  # what a backend may leave out
RandomParts = _contract.RandomParts  # the parts of random numbers that are the framework's
Compiler = _contract.Compiler  # a compiler that traces Python itself
Call = _contract.Call  # one call of a custom-gradient function, as `custom_call` sees it
TapeOfBackend = _contract.Tape  # a recorder of operations
gaps = _contract.gaps  # the ways in which a module breaks the contract

# which backends there are
BUILT_IN = _registry.BUILT_IN  # name -> module, package and how to install it
EMBEDDED = _registry.EMBEDDED  # the backend that needs no framework
active = _registry.active  # the active backend, loaded or not
load = _registry.load  # a backend by name, imported once
known = _registry.list_known  # the names of all backends
unknown = _registry.unknown_message  # the message about a name that is none
chosen = _registry.chosen_name  # the default backend, and what chose it
plugins = _registry.plugins  # the entry points of backends that other packages bring
is_installed = _registry.is_installed  # whether a backend's package is there
is_package = _registry.is_package  # whether a package is there, without importing it
level = _versions.level  # how far a version of a framework is supported
tested_versions = _versions.tested_requirement  # the tested versions, as pip writes them
known_faults = _known_faults.of  # the known faults of a version of a framework
composite_of = _registry.composite_of  # a composite op, whatever stands for it
is_compiling = _registry.is_compiling  # whether a compiler traces the Python code that asks
prepare_import = _built_in.prepare  # import what must come before a backend's framework
settings = _settings  # what was asked for by a function, the environment or the file
missing = _suggestions.missing  # the error about a name that a module does not have
similar = _suggestions.similar  # `; did you mean ...?`

# dtypes, by name
dtype_name = _dtypes.name  # the name of a dtype in any spelling
dtype_of_scalar = _dtypes.of_scalar  # the weak dtype of a Python scalar
result_type = _dtypes.result_type  # the promotion table
to_floating_dtype = _dtypes.to_floating  # the dtype of an op that computes in floats
to_numpy_dtype = _dtypes.to_numpy  # the dtype of NumPy, or of ml_dtypes
BOOLEAN = _dtypes.BOOLEAN  # the names of the dtypes of each kind, from here to COMPLEX
UNSIGNED = _dtypes.UNSIGNED  # integers without a sign
INTEGER = _dtypes.INTEGER  # integers, with a sign and without
FLOATING = _dtypes.FLOATING  # floats
COMPLEX = _dtypes.COMPLEX  # complex numbers
INEXACT = _dtypes.INEXACT  # floating or complex
WIDE = _dtypes.WIDE  # dtype of the 64-bit mode -> what stands for it outside
REAL_PART = _dtypes.REAL_PART  # complex dtype -> the dtype of its parts
EXTREMES = _dtypes.EXTREMES  # dtype -> its least and its largest number
IDENTITY = _dtypes.IDENTITY  # dtype -> the maximum and the minimum of no numbers

# host values: Python scalars, lists and arrays of NumPy
as_numpy = _host.as_numpy  # the array of a host value, by the rules of all backends
flatten_list = _host.flat  # the entries of nested lists
is_scalar = _host.is_scalar  # whether a value is a Python scalar
made_up = _host.made_up  # whether sizes are asked for by made-up values, on which a loop may never end
framework_of = _foreign.owner  # the backend whose tensor a value is
LINEAR_FROM = _foreign.LINEAR_FROM  # names a call of another framework that is linear in its operands from a number on

# arguments in their canonical form; each raises `ArgumentError` by the argument's name
axes = _args.axes  # axes, each once and not negative
single_axis = _args.single_axis  # one axis, not negative
moved_axes = _args.moved_order  # the permutation of `moveaxis`
permutation = _args.permutation  # the axes of a transpose
index_parts = _args.normalize_key  # the parts of a key of `x[key]`, and the axes that they index
sequence = _args.sequence  # a sequence of tensors
function = _args.function  # something that can be called
describe = _args.describe  # a value in the words of an error
definition_of = _args.place  # the file and line where a function begins

# pytrees, beside `multiop.tree`
TREE_NAMESPACE = _tree.NAMESPACE  # optree's namespace of what is registered with multiop

# what a transform returns
Transformed = _Transformed  # a function that is called, bound, copied and pickled as the one that it is made of
