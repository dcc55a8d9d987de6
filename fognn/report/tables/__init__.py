r"""Tables in text, Markdown, LaTeX and csv: the commands ``fognn table`` and ``fognn models``."""

from fognn.report.tables.models import report_models
from fognn.report.tables.paper_table import FORMS, report_table

__all__ = ["FORMS", "report_models", "report_table"]
