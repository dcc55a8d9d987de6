r"""Pages that open from disk: the site made of the ledgers, and comparisons of runs."""

from fognn.report.site.build import build_comparison_report, build_run_report, build_site

__all__ = ["build_comparison_report", "build_run_report", "build_site"]
