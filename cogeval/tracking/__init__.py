"""Runs in MLflow: one run per cogeval run, one nested run per agent version.

Arrow shards are the truth and MLflow the index: whatever fails here costs a warning, never a run.
Importing the package does not import mlflow; only `cogeval.tracking.store` does, in a process of its own.
"""

from cogeval.tracking.messages import RunDescription, Tracked, TrackingSettings
from cogeval.tracking.places import UiCommand, default_settings, ui_command
from cogeval.tracking.tracker import MlflowTracker, track

__all__ = [
    "MlflowTracker",
    "RunDescription",
    "Tracked",
    "TrackingSettings",
    "UiCommand",
    "default_settings",
    "track",
    "ui_command",
]
