import io
from collections.abc import Callable
from pathlib import Path

import pytest

from fognn.experiments import progress
from fognn.experiments.pool import Job
from fognn.experiments.progress import SweepProgress, state_of

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
    assert state_of(job) == (0, "begins")
    write(job.folder, 2)
    text = "epoch 2 of 7, loss 0.5000, val balanced accuracy 12.0000, lr 1.0e-03"
    assert state_of(job) == (2, text)
    plateau = tiny_job(tmp_path / "plateau", epochs=7, training__schedule="plateau")
    write(plateau.folder, 2)
    assert state_of(plateau) == (2, text.replace("of 7", "of at most 7"))


def test_where_a_run_over_folds_stands(tmp_path: Path, tiny_job: Callable[..., Job]) -> None:
    job = tiny_job(tmp_path, epochs=7)
    for fold in range(1, 10):
        write(job.folder / f"fold-{fold}", 7)
    (job.folder / "fold-10").mkdir()
    assert state_of(job) == (0, "fold 10, begins")
    (job.folder / "fold-10" / "metrics.csv").write_text(HEADER + "1,0.001,1,2\n")
    assert state_of(job)[1].startswith("fold 10, epoch 1 of 7, loss 1.0000")


def test_lines(
    tmp_path: Path,
    tiny_job: Callable[..., Job],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    job = tiny_job(tmp_path, epochs=7)
    shown = SweepProgress(3, 1)
    shown.begin(job)
    shown.look([job])  # too early to say anything
    monkeypatch.setattr(progress, "_EVERY", (0.0, 0.0))
    write(job.folder, 1)
    shown.look([job])
    shown.finish(job, "well done")
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
    shown = SweepProgress(4, 1)
    shown.begin(one)
    shown.looked -= 2
    shown.look([one, two])
    assert shown.bars is not None
    lines = {task.description: task for task in shown.bars.tasks}
    assert list(lines) == ["runs", f"  {one.key}", f"  {two.key}"]
    assert (lines[f"  {one.key}"].completed, lines[f"  {one.key}"].total) == (3, 7)
    assert lines[f"  {one.key}"].fields["note"] == state_of(one)[1]
    shown.finish(one, "well done")
    shown.looked -= 2
    shown.look([two])
    assert [task.description for task in shown.bars.tasks] == ["runs", f"  {two.key}"]
    assert (shown.bars.tasks[0].completed, shown.bars.tasks[0].total) == (2, 4)
    shown.close()
    assert f"[2/4] {one.key}: well done" in screen.getvalue()


def test_quiet(
    tmp_path: Path, tiny_job: Callable[..., Job], capsys: pytest.CaptureFixture[str]
) -> None:
    job = tiny_job(tmp_path)
    shown = SweepProgress(3, 1, quiet=True)
    shown.begin(job)
    shown.looked -= 100
    shown.look([job])
    shown.finish(job, "well done")
    shown.close()
    assert capsys.readouterr().err == ""
