"""What each primitive op means, in NumPy and SciPy as they are."""

from .activations import *  # noqa: F403
from .attention import *  # noqa: F403
from .bitwise import *  # noqa: F403
from .control_flow import *  # noqa: F403
from .convolution import *  # noqa: F403
from .creation import *  # noqa: F403
from .elementwise import *  # noqa: F403
from .indexing import *  # noqa: F403
from .linalg import *  # noqa: F403
from .logical import *  # noqa: F403
from .losses import *  # noqa: F403
from .normalization import *  # noqa: F403
from .pooling import *  # noqa: F403
from .products import *  # noqa: F403
from .reduction import *  # noqa: F403
from .segment import *  # noqa: F403
from .shapes import *  # noqa: F403
from .signal import *  # noqa: F403
from .sorting import *  # noqa: F403
from .special import *  # noqa: F403
from .statistics import *  # noqa: F403
from .windows import *  # noqa: F403
