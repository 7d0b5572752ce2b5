"""Tests the event files of utils.tensorboard, which consist of framed protocol-buffer records. The tests parse the records themselves, and also with
TensorBoard if it is installed."""
import struct
import zlib
from pathlib import Path

import gradus
import numpy
import pytest
from gradus.utils.tensorboard import SummaryWriter
from gradus.utils.tensorboard._records import crc32c


def fields(data):
    """Returns [(number, value)] of the fields of a protocol-buffer message. A nested message is given as bytes."""
    found, at = [], 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value = varint()
        else:
            size = varint() if size is None else size
            value, at = data[at:at + size], at + size
        found.append((key >> 3, value))
    return found


def records(path):
    """Returns the records of an event file, after checking their checksums."""
    data, at, found = Path(path).read_bytes(), 0, []
    while at < len(data):
        length, = struct.unpack_from("<Q", data, at)
        for start, size in ((at, 8), (at + 12, length)):
            crc = crc32c(data[start:start + size])
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
            assert struct.unpack_from("<I", data, start + size) == (masked,)
        found.append(data[at + 12:at + 12 + length])
        at += 16 + length
    return found


def values(folder):
    """Returns [(step, tag, {field: content})] of all summaries in the event files of a folder."""
    found = []
    for path in sorted(Path(folder).glob("events.out.tfevents.*")):
        for record in records(path):
            event = dict(fields(record))
            for number, content in fields(event.get(5, b"")):
                value = dict(fields(content))
                found.append((event.get(2), value[1].decode(), value))
    return found


@pytest.fixture
def logged(tmp_path):
    """Provides a function that runs write(writer) and returns the values that the writer has logged."""

    def log(write, **kwargs):
        with SummaryWriter(tmp_path, **kwargs) as writer:
            write(writer)
        return values(tmp_path)

    return log


def test_add_scalar_and_add_scalars(logged, tmp_path):
    def write(writer):
        writer.add_scalar("loss", gradus.tensor(0.5, requires_grad=True), 3)
        writer.add_scalar("loss", 2, gradus.tensor(4), walltime=12.5)
        writer.add_scalar("new", 1.5, new_style=True)
        writer.add_scalar("double", 0.1, double_precision=True)
        writer.add_scalars("both", {"a": 1, "b": numpy.float64(2)}, 7)
        with pytest.raises(AssertionError, match="0D"):
            writer.add_scalar("loss", gradus.ones(2))

    first, second, new, double = logged(write)
    assert first[:2] == (3, "loss") and struct.unpack("<f", first[2][2]) == (0.5,)
    assert second[:2] == (4, "loss") and struct.unpack("<f", second[2][2]) == (2.0,)
    assert dict(fields(new[2][8]))[5] == struct.pack("<f", 1.5) and dict(fields(double[2][8]))[6] == struct.pack("<d", 0.1)
    assert [struct.unpack("<f", values(tmp_path / f"both_{tag}")[0][2][2])[0] for tag in "ab"] == [1.0, 2.0]


def test_the_first_event_names_the_version(tmp_path):
    SummaryWriter(tmp_path, filename_suffix=".mine", purge_step=5).close()
    path, = tmp_path.iterdir()
    events = [dict(fields(record)) for record in records(path)]
    assert path.name.endswith(".mine") and events[0][3] == b"brain.Event:2" and [event.get(2) for event in events] == [None, 5, 5] and events[2][7] == b"\x08\x01"


def test_add_histogram(logged):
    x = gradus.tensor([-2.0, 0.0, 0.5, 0.5, 3.0])
    (_, _, bins), (_, _, few), (_, _, raw) = logged(lambda writer: (
        writer.add_histogram("x", x, bins=[-3, -1, 0, 1, 2, 4]), writer.add_histogram("x", x.bfloat16(), max_bins=4, bins=numpy.arange(-8, 9)),
        writer.add_histogram_raw("x", 0, 1, 2, 3, 4, [1.0, 2.0], [5, 6])))
    unpacked = {number: numpy.frombuffer(content) if number > 5 else struct.unpack("<d", content)[0] for number, content in fields(bins[5])}
    assert [unpacked[i] for i in range(1, 6)] == [-2, 3, 5, 2, 13.5]
    assert unpacked[6].tolist() == [-3, -1, 0, 1, 2, 4] and unpacked[7].tolist() == [0, 1, 0, 3, 0, 1]
    assert sum(numpy.frombuffer(dict(fields(few[5]))[7])) == 5 and numpy.frombuffer(dict(fields(raw[5]))[7]).tolist() == [5, 6]
    with pytest.raises(ValueError, match="no element"):
        logged(lambda writer: writer.add_histogram("x", gradus.ones(0)))


def pixels(png):
    """Returns the rows of pixels of a PNG file. Fails if a row uses one of PNG's filters."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, depth, kind = struct.unpack_from(">IIBB", png, 16)
    start = png.index(b"IDAT")
    size, = struct.unpack_from(">I", png, start - 4)
    lines = numpy.frombuffer(zlib.decompress(png[start + 4:start + 4 + size]), numpy.uint8).reshape(height, -1)
    assert depth == 8 and not lines[:, 0].any()
    return lines[:, 1:].reshape(height, width, {0: 1, 2: 3, 6: 4}[kind])


def test_add_image_and_add_images(logged):
    float_image, bytes_image, batch = gradus.rand(3, 4, 5), gradus.arange(20, dtype=gradus.uint8).reshape(4, 5), gradus.rand(10, 1, 2, 3)
    found = logged(lambda writer: (writer.add_image("a", float_image), writer.add_image("b", bytes_image, dataformats="HW"), writer.add_images("c", batch),
                                   writer.add_image("d", float_image.permute(1, 2, 0), dataformats="HWC"),
                                   writer.add_image_with_boxes("e", gradus.zeros(3, 10, 10), gradus.tensor([[1, 2, 5, 6]]))))
    images = [pixels(dict(fields(value[4]))[4]) for _, _, value in found]
    assert (images[0] == (float_image * 255).to(gradus.uint8).permute(1, 2, 0).numpy()).all() and (images[3] == images[0]).all()
    assert (images[1] == bytes_image.unsqueeze(-1).numpy()).all() and images[2].shape == (4, 24, 3)
    assert images[2][2:, 3:6, 0].tolist() == (batch[9, 0] * 255).to(gradus.uint8).tolist() and images[4][2, 5].tolist() == [255, 0, 0]
    with pytest.raises(AssertionError, match="twice"):
        logged(lambda writer: writer.add_image("a", float_image, dataformats="CCW"))


def test_add_figure(logged):
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed: build/venv/bin/pip install matplotlib")
    figure = pyplot.figure(figsize=(1, 1), dpi=20)
    assert pixels(dict(fields(logged(lambda writer: writer.add_figure("f", figure))[0][2][4]))[4]).shape == (20, 20, 3)


def test_add_text_add_pr_curve_and_add_hparams(logged, tmp_path):
    labels, predictions = gradus.tensor([0, 1, 1, 0]), gradus.tensor([0.1, 0.9, 0.4, 0.6])
    text, curve, tensor, layout = logged(lambda writer: (
        writer.add_text("t", "**bold** ä"), writer.add_pr_curve("p", labels, predictions, num_thresholds=3), writer.add_tensor("n", gradus.ones(2, 3)),
        writer.add_custom_scalars({"c": {"m": ["Margin", ["a", "b", "c"]]}}), writer.add_hparams({"lr": 0.1, "on": True, "name": "x", "none": None}, {"acc": 1}, run_name="r")))
    assert text[1] == "t/text_summary" and dict(fields(text[2][8]))[8].decode() == "**bold** ä"
    rows = numpy.frombuffer(dict(fields(curve[2][8]))[5], "<f4").reshape(6, 3)
    assert rows[:4].tolist() == [[2, 1, 0], [2, 1, 0], [0, 1, 2], [0, 1, 2]]
    assert numpy.frombuffer(dict(fields(tensor[2][8]))[5], "<f4").tolist() == [1] * 6 and layout[1] == "custom_scalars__config__"
    assert [tag for _, tag, _ in values(tmp_path / "r")] == ["_hparams_/experiment", "_hparams_/session_start_info", "_hparams_/session_end_info", "acc"]
    with pytest.raises(TypeError, match="list of same type"):
        logged(lambda writer: writer.add_hparams({"lr": 0.1}, {}, {"lr": ["a"]}))


def test_add_embedding(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        writer.add_embedding(gradus.eye(3), metadata=[["a", 1], ["b", 2], ["c", 3]], metadata_header=["n", "i"], label_img=gradus.rand(3, 3, 2, 2), tag="x/y", global_step=2)
        writer.add_embedding(gradus.eye(2))
    assert (tmp_path / "00002/x%2fy/tensors.tsv").read_text().splitlines()[0] == "1.0\t0.0\t0.0"
    assert (tmp_path / "00002/x%2fy/metadata.tsv").read_text().splitlines() == ["n\ti", "a\t1", "b\t2", "c\t3"]
    assert pixels((tmp_path / "00002/x%2fy/sprite.png").read_bytes()).shape == (4, 4, 3)
    assert (tmp_path / "projector_config.pbtxt").read_text().count("tensor_path") == 2


def test_a_writer_reopens_after_close(tmp_path):
    writer = SummaryWriter(tmp_path)
    writer.close()
    writer.close()
    writer.add_scalar("late", 1)
    writer.flush()
    assert [tag for _, tag, _ in values(tmp_path)] == ["late"] and writer.get_logdir() == str(tmp_path)
    writer.close()


def test_default_log_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="-me") as writer:
        assert writer.log_dir.startswith("runs/") and writer.log_dir.endswith("-me") and list(tmp_path.glob("runs/*-me/events*"))


def test_unsupported_kinds_of_summaries_are_refused(tmp_path):
    with SummaryWriter(tmp_path) as writer:
        for name, args in {"add_graph": (None,), "add_video": ("v", None), "add_mesh": ("m", None), "add_onnx_graph": ("p",)}.items():
            with pytest.raises(NotImplementedError, match=f"SummaryWriter.{name}: "):
                getattr(writer, name)(*args)


def test_tensorboard_reads_the_event_files(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator",
                                      reason="TensorBoard is not installed: build/venv/bin/pip install tensorboard")
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", 0.5, 1)
        writer.add_histogram("x", gradus.randn(10), 1)
        writer.add_image("i", gradus.rand(3, 4, 5), 1)
        writer.add_text("t", "hi", 1)
    found = accumulator.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(event.step, event.value) for event in found.Scalars("loss")] == [(1, 0.5)] and found.Histograms("x")[0].histogram_value.num == 10
    assert (found.Images("i")[0].height, found.Images("i")[0].width) == (4, 5) and found.Tensors("t/text_summary")[0].tensor_proto.string_val == [b"hi"]
