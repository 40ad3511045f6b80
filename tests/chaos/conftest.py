"""Makes the helpers of this folder, and those of two others that it uses, importable."""

import sys
from pathlib import Path

HERE = Path(__file__).parent

sys.path[:0] = [str(HERE), str(HERE.parent / "store"), str(HERE.parent / "cluster")]
