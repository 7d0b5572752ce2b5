"""Recurrent networks beside PyTorch: forward, forward and backward, and a training step of a language model. See beside.py."""
