"""A loader that slices batches from a dataset's flat tensors."""

from fognn.loader.packed import PackedLoader

__all__ = ["PackedLoader"]
