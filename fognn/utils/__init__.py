r"""What all other subpackages use: argument checks, files written whole, safe loading of torch
files, errors. Nothing here knows about graphs."""
