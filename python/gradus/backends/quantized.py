"""Engines of quantized operators: there are none."""
engine = "none"
supported_engines = ["none"]
