"""Conversion of arrays to images: dimension order, grids of several images, and PNG files."""
import struct
import zlib

import numpy


def as_rows(array, dataformats):
    """Returns an image, or a grid of a batch of images, as an array (height, width, channels) with 3 or 4 channels.

    dataformats: names the dimensions of `array` by the letters N, C, H and W, e.g. "CHW". Raises AssertionError if dataformats does not match the
    array.
    """
    formats = dataformats.upper()
    if len(set(formats)) != len(formats):
        raise AssertionError(f"You can not use the same dimension shorthand twice. input_format: {dataformats}")
    if array.ndim != len(formats):
        raise AssertionError(f"size of input tensor and input format are different. tensor shape: {array.shape}, input_format: {dataformats}")
    if len(formats) == 4:
        return grid(array.transpose([formats.find(letter) for letter in "NCHW"])).transpose(1, 2, 0)
    if len(formats) == 3:
        image = array.transpose([formats.find(letter) for letter in "HWC"])
        return image.repeat(3, axis=2) if image.shape[2] == 1 else image
    image = array.transpose([formats.find(letter) for letter in "HW"])
    return numpy.stack([image] * 3, 2)


def grid(images, columns=8):
    """Returns a batch (N, C, H, W) as one image (3, height, width), arranged in rows of `columns` images."""
    if images.shape[1] == 1:
        images = images.repeat(3, axis=1)
    if images.ndim != 4 or images.shape[1] != 3:
        raise AssertionError("Input should be a 4D numpy array with 3 channels")
    n, _, height, width = images.shape
    columns = min(n, columns)
    canvas = numpy.zeros((3, height * -(-n // columns), width * columns), images.dtype)
    for i, image in enumerate(images):
        y, x = i // columns * height, i % columns * width
        canvas[:, y:y + height, x:x + width] = image
    return canvas


def as_bytes(image):
    """Returns an image as uint8. An image of another dtype has values in [0, 1], which are multiplied by 255."""
    scale = 1 if image.dtype == numpy.uint8 else 255
    return (image.astype(numpy.float32) * scale).clip(0, 255).astype(numpy.uint8)


def png(image):
    """Returns the contents of a PNG file for an array (height, width, channels) of uint8 with 1, 3 or 4 channels."""
    height, width, channels = image.shape
    lines = numpy.zeros((height, 1 + width * channels), numpy.uint8)  # the first byte of each line is the number of its PNG filter; 0 is no filter
    lines[:, 1:] = image.reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2, 4: 6}[channels], 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes())), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks)


def of_figure(figures, close=True):
    """Returns the pixels (C, H, W) of a matplotlib figure, or (N, C, H, W) of a list of figures. close: closes the figures afterwards."""
    from matplotlib import pyplot
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    def pixels(figure):
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        image = numpy.asarray(canvas.buffer_rgba())[:, :, :3].transpose(2, 0, 1)
        if close:
            pyplot.close(figure)
        return image

    return numpy.stack([pixels(figure) for figure in figures]) if isinstance(figures, list) else pixels(figures)
