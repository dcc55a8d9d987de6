r"""Helpers for all other subpackages: argument checks, atomic file writes, safe loading of torch
files, errors. Nothing here depends on graphs."""
