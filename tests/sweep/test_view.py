import io
from collections.abc import Callable
from pathlib import Path

import pytest

from fognn.sweep import view
from fognn.sweep.pool import Job
from fognn.sweep.view import View, standing

HEADER = "epoch,lr,train_loss,val_balanced_accuracy_items\n"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def write(folder: Path, epochs: int) -> None:
    folder.mkdir(parents=True)
    lines = [f"{n},0.001,{1 / n},{10 + n}\n" for n in range(1, epochs + 1)]
    (folder / "metrics.csv").write_text(HEADER + "".join(lines))


def test_where_a_run_stands(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path, epochs=7)
    assert standing(job) == ""
    write(job.folder, 2)
    text = "epoch 2 of 7, loss 0.5000, val balanced accuracy 12.0000, rate 1.0e-03"
    assert standing(job) == text
    plateau = tiny_job(tmp_path / "plateau", epochs=7, training__schedule="plateau")
    write(plateau.folder, 2)
    assert standing(plateau) == text.replace("of 7", "of at most 7")


def test_where_a_run_over_folds_stands(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path, epochs=7)
    for fold in range(1, 10):
        write(job.folder / f"fold-{fold}", 7)
    (job.folder / "fold-10").mkdir()
    assert standing(job) == "fold 10"
    (job.folder / "fold-10" / "metrics.csv").write_text(HEADER + "1,0.001,1,2\n")
    assert standing(job).startswith("fold 10, epoch 1 of 7, loss 1.0000")


def test_lines(
    tmp_path: Path,
    tiny_job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = tiny_job(tmp_path, epochs=7)
    shown = View(3, 1)
    shown.begins(job)
    shown.look([job])  # too early to say anything
    monkeypatch.setattr(view, "_EVERY", 0.0)
    write(job.folder, 1)
    shown.look([job])
    shown.finished(job, "well done")
    shown.close()
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == f"{job.key}: begins"
    assert second.startswith(f"{job.key}: epoch 1 of 7")
    assert third == f"[2/3] {job.key}: well done"


def test_bars(
    tmp_path: Path, tiny_job: Callable[..., Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = Terminal()
    monkeypatch.setattr("sys.stderr", screen)
    one, two = tiny_job(tmp_path / "1", epochs=7), tiny_job(tmp_path / "2", epochs=8)
    write(one.folder, 3)
    shown = View(4, 1)
    shown.begins(one)
    shown.looked -= 2
    shown.look([one, two])
    assert [line.desc for line in shown.lines] == [
        f"  {one.key}: {standing(one)}",
        f"  {two.key}: begins",
    ]
    shown.finished(one, "well done")
    shown.looked -= 2
    shown.look([two])
    assert [line.desc for line in shown.lines] == [f"  {two.key}: begins", ""]
    shown.close()
    text = screen.getvalue()
    assert "1/4" in text
    assert "2/4" in text
    assert f"[2/4] {one.key}: well done" in text


def test_quiet(
    tmp_path: Path, tiny_job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    job = tiny_job(tmp_path)
    shown = View(3, 1, quiet=True)
    shown.begins(job)
    shown.looked -= 100
    shown.look([job])
    shown.finished(job, "well done")
    shown.close()
    assert capsys.readouterr().err == ""
