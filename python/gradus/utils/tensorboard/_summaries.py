"""Encodes the messages that TensorBoard's plug-ins read. The docstrings name messages of TensorBoard's .proto files, which define the field
numbers."""
import io
import wave

import numpy

from ._images import as_bytes, as_rows, png
from ._protobuf import double, doubles, float32, float32s, integer, message, text

_FLOAT, _STRING = 1, 7  # values of the enum DataType in tensor.proto


def value(tag, content, metadata=b""):
    """Returns a Summary with one value: Summary.value { tag, content, metadata }. `content` and `metadata` are encoded fields."""
    return message(1, text(1, tag), content, metadata)


def _plugin(name, content=b"", display_name=None, description=None):
    """Returns the field Summary.Value.metadata { plugin_data { plugin_name, content }, display_name, summary_description }."""
    named = (text(2, display_name) if display_name else b"") + (text(3, description) if description else b"")
    return message(9, message(1, text(1, name), message(2, content)), named)


def _shape(*sizes):
    """Returns the field TensorProto.tensor_shape { dim { size } } for the given sizes."""
    return message(2, *(message(2, integer(1, size)) for size in sizes))


def scalar(tag, number, new_style=False, double_precision=False):
    """Returns the Summary of a number: a simple_value or, if new_style or double_precision is true, a 0-d tensor for the plug-in "scalars"."""
    if double_precision:
        tensor = message(8, integer(1, 2), _shape(), doubles(6, [number]))
    elif new_style:
        tensor = message(8, integer(1, _FLOAT), _shape(), float32s(5, [number]))
    else:
        return value(tag, float32(2, number))
    return value(tag, tensor, _plugin("scalars"))


def tensor(tag, array):
    """Returns the Summary of a tensor of float32 or float64 numbers."""
    is_double = array.dtype == numpy.float64
    numbers = (doubles(6, array.ravel()) if is_double else float32s(5, array.ravel().astype(numpy.float32)))
    return value(tag, message(8, integer(1, 2 if is_double else _FLOAT), _shape(*array.shape), numbers), _plugin("tensor"))


def histogram(tag, array, bins, max_bins=None):
    """Returns the Summary of a histogram of the array's numbers. bins: as in numpy.histogram. Raises ValueError for an empty array.

    max_bins: if `bins` gives more bins than this, adjacent bins are merged.
    """
    if array.size == 0:
        raise ValueError("The input has no element.")
    numbers = array.ravel().astype(numpy.float64)
    counts, limits = numpy.histogram(numbers, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        step = len(counts) // max_bins
        counts = numpy.add.reduceat(counts, numpy.arange(0, len(counts), step))
        limits = numpy.append(limits[:-1:step], limits[-1])
    filled = numpy.flatnonzero(counts)
    first, last = filled[0], filled[-1] + 1
    # The message contains only the right ends of bins. An empty bin is added in front, so that its right end gives the left end of the first
    # nonempty bin.
    counts = numpy.concatenate([[0], counts[first:last]])
    return histogram_raw(tag, numbers.min(), numbers.max(), len(numbers), numbers.sum(), numbers.dot(numbers), limits[first:last + 1], counts)


def histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts):
    """Returns the Summary of a computed histogram: HistogramProto { min, max, num, sum, sum_squares, bucket_limit, bucket }."""
    fields = b"".join(double(number, field) for number, field in enumerate((min, max, num, sum, sum_squares), 1))
    return value(tag, message(5, fields, doubles(6, bucket_limits), doubles(7, bucket_counts)))


def image(tag, array, dataformats):
    """Returns the Summary of an image: Summary.Image { height, width, colorspace, encoded_image_string }. dataformats: names the dimensions of
    `array` by the letters N, C, H and W."""
    pixels = as_bytes(as_rows(array, dataformats))
    height, width, channels = pixels.shape
    return value(tag, message(4, integer(1, height), integer(2, width), integer(3, channels), message(4, png(pixels))))


def audio(tag, samples, sample_rate):
    """Returns the Summary of a sound: Summary.Audio { sample_rate, num_channels, length_frames, encoded_audio_string, content_type }.

    samples: the samples of one channel, in [-1, 1]. They are encoded as a WAV file.
    """
    samples = (samples.ravel().clip(-1, 1) * 32767).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sample_rate)
        writer.writeframes(samples.tobytes())
    return value(tag, message(6, float32(1, sample_rate), integer(2, 1), integer(3, len(samples)), message(4, file.getvalue()), text(5, "audio/wav")))


def written(tag, string):
    """Returns the Summary of a string for the plug-in "text", which reads Markdown."""
    content = message(8, integer(1, _STRING), _shape(1), text(8, string))
    return value(f"{tag}/text_summary", content, _plugin("text"))


def pr_curve(tag, labels, predictions, num_thresholds, weights):
    """Returns the Summary of a precision-recall curve, computed for labels 0 and 1 and predictions in [0, 1] at num_thresholds thresholds."""
    num_thresholds = min(num_thresholds, 127)
    weights = 1.0 if weights is None else weights
    places, labels = numpy.floor(predictions * (num_thresholds - 1)).astype(numpy.int32), labels.astype(numpy.float64)

    def above(counted):
        counts, _ = numpy.histogram(places, num_thresholds, (0, num_thresholds - 1), weights=counted * weights)
        return counts[::-1].cumsum()[::-1]

    tp, fp = above(labels), above(1.0 - labels)
    tn, fn = fp[0] - fp, tp[0] - tp
    return pr_curve_raw(tag, tp, fp, tn, fn, tp / numpy.maximum(1e-7, tp + fp), tp / numpy.maximum(1e-7, tp + fn), num_thresholds)


def pr_curve_raw(tag, tp, fp, tn, fn, precision, recall, num_thresholds):
    """Returns the Summary of a precision-recall curve: a tensor with six rows, and PrCurvePluginData { version, num_thresholds }."""
    rows = numpy.stack([tp, fp, tn, fn, precision, recall])
    content = message(8, integer(1, _FLOAT), _shape(*rows.shape), float32s(5, rows.ravel()))
    return value(tag, content, _plugin("pr_curves", integer(2, min(num_thresholds, 127))))


def custom_scalars(layout):
    """Returns the Summary that defines charts: Layout { category { title, chart { title, multiline { tag } or margin { series } } } }.

    layout: {category: {chart: ["Multiline" or "Margin", tags]}}.
    """

    def chart(title, kind, tags):
        if kind == "Margin":
            if len(tags) != 3:
                raise AssertionError("len(tags) != 3")
            return message(2, text(1, title), message(3, message(1, *(text(number, tag) for number, tag in enumerate(tags, 1)))))
        return message(2, text(1, title), message(2, *(text(1, tag) for tag in tags)))

    categories = [message(2, text(1, title), *(chart(name, *described) for name, described in charts.items())) for title, charts in layout.items()]
    return value("custom_scalars__config__", message(8, integer(1, _STRING), _shape(), message(8, *categories)), _plugin("custom_scalars"))


# ---- Hyperparameters ----------------------------------------------------------------------------------------------------------


def _json_value(number, content):
    """Returns the field google.protobuf.Value { number_value, string_value or bool_value }."""
    if isinstance(content, bool):
        return message(number, integer(4, content))
    return message(number, text(3, content) if isinstance(content, str) else double(2, content))


def hparams(hparam_dict, metric_dict, domains):
    """Returns the three Summaries of a run's hyperparameters: the experiment, the start of the session, and its end.

    domains: {name: list of possible values}. Raises TypeError or ValueError for values of other types than bool, int, float and str.
    """
    given = {name: content for name, content in hparam_dict.items() if content is not None}
    for name, domain in domains.items():
        if name not in hparam_dict or not isinstance(domain, list) or not all(isinstance(item, type(hparam_dict[name])) for item in domain):
            raise TypeError(f"parameter: hparam_domain_discrete[{name}] should be a list of same type as hparam_dict[{name}].")
    infos, starts = [], []
    for name, content in given.items():
        if not isinstance(content, (bool, int, float, str)):
            raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")
        kind = 1 if isinstance(content, str) else 2 if isinstance(content, bool) else 3  # value of the enum DataType in hparams/api.proto
        domain = message(5, *(_json_value(1, item) for item in domains[name])) if name in domains else b""
        infos.append(message(4, text(1, name), integer(4, kind), domain))
        starts.append(message(1, text(1, name), _json_value(2, content)))
    metrics = [message(5, message(1, text(2, name))) for name in metric_dict]
    contents = {"experiment": message(2, *infos, *metrics), "session_start_info": message(3, *starts), "session_end_info": message(4, integer(1, 1))}
    return [value(f"_hparams_/{name}", b"", _plugin("hparams", content)) for name, content in contents.items()]


# ---- Events -------------------------------------------------------------------------------------------------------------------


def event(wall_time, step=None, content=b""):
    """Returns the message Event { wall_time, step, content }. `content` is an encoded field."""
    return double(1, wall_time) + (integer(2, step) if step is not None else b"") + content


def file_version():
    """Returns the field Event.file_version."""
    return text(3, "brain.Event:2")


def session_start():
    """Returns the field Event.session_log { status: START }."""
    return message(7, integer(1, 1))


def summary(*values):
    """Returns the field Event.summary, a Summary with the given encoded values."""
    return message(5, *values)


def projector_config(embeddings):
    """Returns the text of a ProjectorConfig. embeddings: one dictionary per embedding.

    A dictionary maps a field's name to a value, a list of values or a nested dictionary.
    """

    def lines(fields, indent):
        for name, content in fields.items():
            if isinstance(content, dict):
                yield f"{indent}{name} {{"
                yield from lines(content, indent + "  ")
                yield indent + "}"
            else:
                for item in content if isinstance(content, list) else [content]:
                    yield f"{indent}{name}: " + (f'"{item}"' if isinstance(item, str) else str(item))

    return "".join(f"{line}\n" for fields in embeddings for line in lines({"embeddings": fields}, ""))
