"""fognn: second-order message passing for PyTorch Geometric."""

__version__ = "0.1.0.dev0"
