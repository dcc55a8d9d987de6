r"""Drawings and pages."""

from fognn.report.data_report import DrawOptions, report_csv, report_dataset, report_datasets
from fognn.report.drawing import Drawing, save_drawing
from fognn.report.run_folder import Run, read_run
from fognn.report.run_report import compare_runs, runs_table

__all__ = [
    "DrawOptions",
    "Drawing",
    "Run",
    "compare_runs",
    "read_run",
    "report_csv",
    "report_dataset",
    "report_datasets",
    "runs_table",
    "save_drawing",
]
