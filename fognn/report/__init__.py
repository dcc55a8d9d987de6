r"""Tables, drawings and pages.

- :mod:`fognn.report.tables`: a table of the paper beside the measurement, the list of networks;
- :mod:`fognn.report.site`: the site made of the ledgers, and the page that compares run folders;
- :mod:`fognn.report.comparison`: ``fognn compare``;
- :mod:`fognn.report.drawings`: drawings of graphs and molecules, the statistics of a dataset;
- :mod:`fognn.report.few_shot`: the answers of a few-shot network for a user's own images.
"""
