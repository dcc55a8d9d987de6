import subprocess
import sys

import pytest

import fognn
import fognn.models
import fognn.nn


def test_names() -> None:
    assert set(fognn.__all__) == set(dir(fognn))
    assert fognn.FOG is fognn.nn.FOG
    assert fognn.create_model is fognn.models.create_model
    for name in fognn.__all__:
        assert getattr(fognn, name) is not None
    with pytest.raises(AttributeError, match="module 'fognn' has no attribute 'fgo'"):
        fognn.fgo  # noqa: B018


def test_torch_is_imported_when_it_is_needed() -> None:
    code = (
        "import sys, fognn; assert 'torch' not in sys.modules; "
        "fognn.FOG; assert 'torch' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
