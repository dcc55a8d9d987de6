r"""Tables and pages of the results, and the statistics of a dataset."""
