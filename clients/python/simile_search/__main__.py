"""python -m simile_search: the command `simile`."""

import sys

from .command import main

sys.exit(main())
