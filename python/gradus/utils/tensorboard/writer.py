"""SummaryWriter, which logs data for TensorBoard, and FileWriter, which writes an event file."""
import itertools
import math
import os
import socket
import time
from datetime import datetime

import numpy

import gradus

from . import _images, _summaries
from ._records import record

__all__ = ["FileWriter", "SummaryWriter"]

# Counts the event files of this process. The count is part of each file's name, so that no two names are equal.
_numbers_of_files = itertools.count()


def _array(values):
    """Returns a NumPy array for a tensor, a number or a sequence. float16 and bfloat16 tensors are converted to float32."""
    if isinstance(values, gradus.Tensor):
        values = values.detach().cpu()
        return (values.float() if values.dtype in (gradus.bfloat16, gradus.float16) else values).numpy()
    return numpy.asarray(values)


def _number(value):
    """Returns the only element of a tensor, array or number as a float. Raises AssertionError unless there is exactly one element."""
    array = _array(value)
    if array.size != 1:
        raise AssertionError("scalar should be 0D")
    return float(array.reshape(()))


class FileWriter:
    """An event file in a folder.

    Events are written to disk by flush(), or by the first add_event() more than flush_secs seconds after the last flush.
    """

    def __init__(self, log_dir, max_queue=10, flush_secs=120, filename_suffix=""):
        self._log_dir, self._flush_secs, self._suffix = os.fspath(log_dir), flush_secs, filename_suffix
        self._open()

    def _open(self):
        """Opens a new event file in the folder and writes the version of the format."""
        os.makedirs(self._log_dir, exist_ok=True)
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_numbers_of_files)}{self._suffix}"
        self._file = open(os.path.join(self._log_dir, name), "wb")
        self._flushed = time.monotonic()
        self.add_event(_summaries.file_version())
        self.flush()

    def get_logdir(self):
        """Returns the path of the folder."""
        return self._log_dir

    def add_event(self, event, step=None, walltime=None):
        """Writes an event. `event` is an encoded field of the message Event."""
        self._file.write(record(_summaries.event(time.time() if walltime is None else walltime, step, event)))
        if time.monotonic() - self._flushed > self._flush_secs:
            self.flush()

    def add_summary(self, summary, global_step=None, walltime=None):
        """Writes an event with a Summary."""
        self.add_event(_summaries.summary(summary), None if global_step is None else int(_number(global_step)), walltime)

    def flush(self):
        """Writes all events to disk."""
        self._file.flush()
        self._flushed = time.monotonic()

    def close(self):
        """Closes the file."""
        self._file.close()

    def reopen(self):
        """Opens a new file."""
        self._open()


def _default_bins():
    """Returns the edges of TensorBoard's default bins: 0, the numbers 1e-12 * 1.1**i below 1e20, and the negatives of these numbers."""
    bins, end = [], 1e-12
    while end < 1e20:
        bins.append(end)
        end *= 1.1
    return [-end for end in reversed(bins)] + [0] + bins


class SummaryWriter:
    """Writes data for TensorBoard to an event file in the folder log_dir, by default runs/<time>_<host><comment>.

    purge_step: TensorBoard hides the data that earlier runs logged for step purge_step and later steps.
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", f"{datetime.now().strftime('%b%d_%H-%M-%S')}_{socket.gethostname()}{comment}")
        self.log_dir, self.purge_step = os.fspath(log_dir), purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self.file_writer = self.all_writers = None
        self.default_bins = _default_bins()
        self._embeddings = []
        self._get_file_writer()

    def _new_writer(self, folder):
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _get_file_writer(self):
        """Returns the FileWriter. Opens a new file if the writer was closed."""
        if self.file_writer is None:
            self.file_writer = self._new_writer(self.log_dir)
            self.all_writers = {self.log_dir: self.file_writer}
            if self.purge_step is not None:
                self.file_writer.add_event(_summaries.file_version(), self.purge_step)
                self.file_writer.add_event(_summaries.session_start(), self.purge_step)
                self.purge_step = None
        return self.file_writer

    def _add(self, summary, global_step, walltime):
        self._get_file_writer().add_summary(summary, global_step, walltime)

    def get_logdir(self):
        """Returns the path of the folder."""
        return self.log_dir

    # ---- Numbers ----------------------------------------------------------------------------------------------------------------

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """Adds a number, given as a tensor of one element or a Python number."""
        self._add(_summaries.scalar(tag, _number(scalar_value), new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Adds several numbers that are shown in one chart. Each number goes to a separate folder, named after main_tag and the number's key."""
        self._get_file_writer()
        for tag, number in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            if folder not in self.all_writers:
                self.all_writers[folder] = self._new_writer(folder)
            self.all_writers[folder].add_summary(_summaries.scalar(main_tag, _number(number)), global_step, walltime)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """Adds a tensor."""
        self._add(_summaries.tensor(tag, _array(tensor)), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """Adds a histogram of the elements of a tensor. bins: "tensorflow" for exponentially growing bins, or as in numpy.histogram."""
        bins = self.default_bins if isinstance(bins, str) and bins == "tensorflow" else bins
        self._add(_summaries.histogram(tag, _array(values), bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None, walltime=None):
        """Adds a histogram that has been computed already. Raises ValueError if the numbers of limits and counts differ."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        self._add(_summaries.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts), global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Adds the precision-recall curve of predictions in [0, 1] for labels 0 and 1."""
        weights = None if weights is None else _array(weights)
        self._add(_summaries.pr_curve(tag, _array(labels), _array(predictions), num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall, global_step=None,
                         num_thresholds=127, weights=None, walltime=None):
        """Adds a precision-recall curve that has been computed already."""
        rows = map(_array, (true_positive_counts, false_positive_counts, true_negative_counts, false_negative_counts, precision, recall))
        self._add(_summaries.pr_curve_raw(tag, *rows, num_thresholds), global_step, walltime)

    def add_custom_scalars(self, layout):
        """Defines charts of scalars: {category: {chart: ["Multiline", tags] or ["Margin", [value, lower, upper]]}}."""
        self._add(_summaries.custom_scalars(layout), None, None)

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """Defines a chart that shows the scalars of several tags as lines."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """Defines a chart that shows a scalar with its lower and upper bounds: tags are [value, lower, upper].

        Raises AssertionError for another number of tags.
        """
        if len(tags) != 3:
            raise AssertionError(f"Expected 3 tags, got {len(tags)}.")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Writes hyperparameters and the metrics of their run to a subfolder named run_name. The default name is the time.

        Raises TypeError if hparam_dict or metric_dict is not a dict, or if a value in hparam_domain_discrete has another type
        than its hyperparameter.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        values = {name: value.item() if isinstance(value, gradus.Tensor) else value for name, value in hparam_dict.items()}
        summaries = _summaries.hparams(values, metric_dict, hparam_domain_discrete or {})
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for summary in summaries:
                writer._add(summary, global_step, None)
            for tag, number in metric_dict.items():
                writer.add_scalar(tag, number, global_step)

    # ---- Images, sounds and texts -------------------------------------------------------------------------------------------------

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """Adds an image of uint8, or of numbers in [0, 1]. dataformats: names its dimensions by the letters C, H and W."""
        self._add(_summaries.image(tag, _array(img_tensor), dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Adds a batch of images, or a list of images, as a grid with eight columns."""
        if isinstance(img_tensor, list):
            img_tensor = numpy.stack([_array(image) for image in img_tensor])
            dataformats = dataformats if len(dataformats) == 4 else f"N{dataformats}"
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """Adds a matplotlib figure, or a list of figures as a grid."""
        self.add_image(tag, _images.of_figure(figure, close), global_step, walltime, "NCHW" if isinstance(figure, list) else "CHW")

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1, dataformats="CHW", labels=None):
        """Adds an image with red boxes, each given as (left, top, right, bottom). Raises NotImplementedError for labels and for rescaling."""
        if labels is not None or rescale != 1:
            raise NotImplementedError("SummaryWriter.add_image_with_boxes: labels are not drawn, and images not rescaled")
        image = _images.as_bytes(_images.as_rows(_array(img_tensor), dataformats))[:, :, :3].copy()
        for left, top, right, bottom in _array(box_tensor).astype(int):
            image[[top, bottom], left:right + 1] = image[top:bottom + 1, [left, right]] = (255, 0, 0)
        self.add_image(tag, image, global_step, walltime, "HWC")

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Adds a sound. snd_tensor: samples of one channel in [-1, 1]."""
        self._add(_summaries.audio(tag, _array(snd_tensor), sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """Adds a text, which TensorBoard shows as Markdown."""
        self._add(_summaries.written(tag, text_string), global_step, walltime)

    # ---- Embeddings ---------------------------------------------------------------------------------------------------------------

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Adds points for the embedding projector. mat: (points, features).

        metadata: one label per point; if metadata_header is given, one list of labels per point. label_img: one image (C, H, W) per point. Raises
        AssertionError if the numbers of points, labels and images differ.
        """
        points, step = _array(mat), 0 if global_step is None else global_step
        if points.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        below = f"{str(step).zfill(5)}/" + tag.replace("%", "%25").replace("/", "%2f").replace("\\", "%5c")
        folder = os.path.join(self._get_file_writer().get_logdir(), below)
        os.makedirs(folder, exist_ok=True)
        info = {"tensor_name": f"{tag}:{str(step).zfill(5)}", "tensor_path": f"{below}/tensors.tsv"}
        _write_lines(folder, "tensors.tsv", ["\t".join(str(number) for number in point) for point in points.tolist()])
        if metadata is not None:
            if len(metadata) != len(points):
                raise AssertionError("#labels should equal with #data points")
            rows = ["\t".join(map(str, row)) for row in [metadata_header, *metadata]] if metadata_header else map(str, metadata)
            _write_lines(folder, "metadata.tsv", rows)
            info["metadata_path"] = f"{below}/metadata.tsv"
        if label_img is not None:
            if len(label_img) != len(points):
                raise AssertionError("#images should equal with #data points")
            with open(os.path.join(folder, "sprite.png"), "wb") as file:
                file.write(_images.png(_sprite(_array(label_img))))
            info["sprite"] = {"image_path": f"{below}/sprite.png", "single_image_dim": [label_img.shape[3], label_img.shape[2]]}
        self._embeddings.append(info)
        with open(os.path.join(self.log_dir, "projector_config.pbtxt"), "w") as file:
            file.write(_summaries.projector_config(self._embeddings))

    # ---- Methods that are not implemented -------------------------------------------------------------------------------------------

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """Raises NotImplementedError, because models are not traced and have no graph."""
        raise NotImplementedError("SummaryWriter.add_graph: models are not traced, so there is no graph to show")

    def add_onnx_graph(self, prototxt):
        """Raises NotImplementedError, because ONNX is not supported."""
        raise NotImplementedError("SummaryWriter.add_onnx_graph: there is no ONNX")

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """Raises NotImplementedError, because there is no video encoder. add_images can show the frames."""
        raise NotImplementedError("SummaryWriter.add_video: there is no encoder for videos; add_images shows the frames")

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """Raises NotImplementedError, because meshes are not supported."""
        raise NotImplementedError("SummaryWriter.add_mesh: meshes are not written")

    # ---- Flushing and closing -------------------------------------------------------------------------------------------------------

    def flush(self):
        """Writes all events to disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self):
        """Closes all files. A later call that adds data opens new files."""
        for writer in (self.all_writers or {}).values():
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_val, exc_tb):
        self.close()


def _write_lines(folder, name, lines):
    with open(os.path.join(folder, name), "w") as file:
        file.writelines(f"{line}\n" for line in lines)


def _sprite(images):
    """Returns one square image (size, size, 3) that shows the images (N, C, H, W) in a square grid."""
    arranged = _images.as_bytes(_images.grid(images, math.ceil(len(images) ** 0.5))).transpose(1, 2, 0)
    square = numpy.zeros((arranged.shape[1], arranged.shape[1], 3), numpy.uint8)
    square[:arranged.shape[0]] = arranged
    return square
