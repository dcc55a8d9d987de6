r"""Drawings of graphs, molecules and images, and the report of ``fognn data``."""

from fognn.report.drawings.data_report import (
    DrawOptions,
    report_csv,
    report_dataset,
    report_datasets,
)
from fognn.report.drawings.drawing import KINDS, Drawing, save_drawing

__all__ = [
    "KINDS",
    "DrawOptions",
    "Drawing",
    "report_csv",
    "report_dataset",
    "report_datasets",
    "save_drawing",
]
