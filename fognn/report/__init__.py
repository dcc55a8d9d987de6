r"""Drawings and pages."""

from fognn.report.data_report import DrawOptions, report_csv, report_dataset, report_datasets
from fognn.report.drawing import Drawing, save_drawing

__all__ = [
    "DrawOptions",
    "Drawing",
    "report_csv",
    "report_dataset",
    "report_datasets",
    "save_drawing",
]
