"""Lists the engines for quantized operators. There are none."""
engine = "none"
supported_engines = ["none"]
