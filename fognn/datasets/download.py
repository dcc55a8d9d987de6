r"""Downloads that go on where they stopped and count only when their checksum is right."""

import http.client
import os
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from tqdm import tqdm

from fognn.utils.errors import FileError
from fognn.utils.files import sha256_of

__all__ = ["download"]

_CHUNK = 2**20
_TIMEOUT = 30.0  # seconds without a byte


def download(url: str, sha256: str, target: Path) -> None:
    r"""Downloads a file; :obj:`target` is there when all of it is, and right.

    What arrives lies beside it under another name until then, and the next call goes on with
    that. The folder must be there. An :class:`OSError` means the disk, a :class:`FileError`
    the network or a wrong file.

    Args:
        url (str): The address.
        sha256 (str): The SHA-256 that the file must have.
        target (Path): Where the file shall be.
    """
    # The name carries the checksum: a part of another version is never continued.
    part = target.with_name(f"{target.name}.{sha256[:12]}.part")
    resumed = part.is_file()
    _receive(url, part, target)
    if resumed and sha256_of(part) != sha256:
        # The old part may be the culprit, so one fresh try before the address is blamed.
        part.unlink()
        _receive(url, part, target)
    got = sha256_of(part)
    if got != sha256:
        part.unlink()
        raise FileError(
            f"{url} gave a wrong file and it was removed: its SHA-256 is {got}, it must be "
            f"{sha256}; try again later, or get the file by hand and put it at {target}"
        )
    os.replace(part, target)


def _receive(url: str, part: Path, target: Path) -> None:
    r"""Downloads to :obj:`part`, after what is there already."""
    have = part.stat().st_size if part.is_file() else 0
    headers = {"User-Agent": "fognn", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    by_hand = f"or get {url} by hand and put it at {target}"
    try:
        response = urllib.request.urlopen(
            urllib.request.Request(url, headers=headers), timeout=_TIMEOUT
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416 and have:
            return  # nothing is left to send: the checksum says whether the part is the file
        raise FileError(
            f"{url} answered {error.code} {error.reason}: try again later, {by_hand}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise FileError(
            f"{url} could not be reached ({reason}): check the network, {by_hand}"
        ) from error
    with response:
        # A server that ignores or misreads Range sends another piece: begin again.
        goes_on = response.status == 206 and str(response.headers["Content-Range"]).startswith(
            f"bytes {have}-"
        )
        if have and response.status == 206 and not goes_on:
            part.unlink()
            _receive(url, part, target)
            return
        have = have if goes_on else 0
        length = response.headers["Content-Length"]
        total = have + int(length) if length and length.isdigit() else None
        bar = tqdm(
            desc=target.name,
            initial=have,
            total=total,
            unit="B",
            unit_scale=True,
            disable=None,  # silent unless the output is a terminal
        )
        try:
            with bar, open(part, "ab" if have else "wb") as file:
                for chunk in _chunks(url, response):
                    file.write(chunk)
                    bar.update(len(chunk))
                    have += len(chunk)
        except OSError:
            part.unlink(missing_ok=True)  # a full disk must not stay full because of us
            raise
    if total is not None and have < total:
        raise FileError(
            f"{url} stopped after {have:,} of {total:,} bytes: call again, it goes on from there"
        )


def _chunks(url: str, response: http.client.HTTPResponse) -> Iterator[bytes]:
    while True:
        try:
            chunk = response.read(_CHUNK)
        except (OSError, http.client.HTTPException) as error:
            raise FileError(
                f"{url} stopped in the middle ({error}): call again, it goes on from there"
            ) from error
        if not chunk:
            return
        yield chunk
