r"""Pages that open from disk: the site made of the ledgers, and the comparison of run folders."""

from fognn.report.site.build import build_run_report, build_site

__all__ = ["build_run_report", "build_site"]
