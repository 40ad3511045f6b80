"""`python -m cogeval`: the command line."""

import sys

from cogeval.cli import main

sys.exit(main())  # type: ignore[no-untyped-call]  # main is read by old Pythons too
