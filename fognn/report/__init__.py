r"""Tables and pages.

- :mod:`fognn.report.tables`: a table of the paper beside the measurement, the list of networks;
- :mod:`fognn.report.claims`: the claims of the paper and whether they hold here;
- :mod:`fognn.report.site`: the site made of the ledgers, the page that compares run folders, and
  the page of ``fognn compare``;
- :mod:`fognn.report.data`: the statistics of a dataset.
"""
