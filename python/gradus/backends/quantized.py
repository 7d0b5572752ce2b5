"""Engines for quantized operators, of which there are none."""
engine = "none"
supported_engines = ["none"]
