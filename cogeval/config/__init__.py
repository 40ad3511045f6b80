"""The composition root: from Hydra's configuration to the objects of a run.

Invariant: the only package that knows every table and puts the floors together; it decides nothing
itself. The only direct imports of omegaconf.
"""

from cogeval.config.building import (
    Experiment,
    build_experiment,
    build_plan,
    cluster_options,
    make_importable,
)
from cogeval.config.reading import config_from_plain, config_from_yaml, config_to_yaml, read_config
from cogeval.config.schema import Config, RatingConfig
from cogeval.files import conf_dir

__all__ = [
    "Config",
    "Experiment",
    "RatingConfig",
    "build_experiment",
    "build_plan",
    "cluster_options",
    "conf_dir",
    "config_from_plain",
    "config_from_yaml",
    "config_to_yaml",
    "make_importable",
    "read_config",
]
