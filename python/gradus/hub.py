"""Loads models from local folders with a hubconf.py. Nothing is downloaded, so a repository on GitHub, or a file at a URL, must already be in the
cache folder."""
import importlib.util
import os
import sys
from urllib.parse import urlparse

__all__ = ["download_url_to_file", "get_dir", "help", "list", "load", "load_state_dict_from_url", "set_dir"]

_hub_dir = None
DEFAULT_CACHE_DIR = "~/.cache"
ENV_GITHUB_TOKEN, ENV_TORCH_HOME, ENV_XDG_CACHE_HOME = "GITHUB_TOKEN", "TORCH_HOME", "XDG_CACHE_HOME"
MODULE_HUBCONF, VAR_DEPENDENCY = "hubconf.py", "dependencies"
READ_DATA_CHUNK = 128 * 1024


def _get_torch_home():
    """Returns the folder $TORCH_HOME. If TORCH_HOME is not set, returns $XDG_CACHE_HOME/torch, by default ~/.cache/torch. Programs such as
    torchvision import this function."""
    return os.path.expanduser(os.environ.get("TORCH_HOME") or os.path.join(os.environ.get("XDG_CACHE_HOME", "~/.cache"), "torch"))


def get_dir():
    """Returns the cache folder: the folder given to set_dir, or $TORCH_HOME/hub if set_dir was not called. The default is ~/.cache/torch/hub."""
    return _hub_dir if _hub_dir is not None else os.path.join(_get_torch_home(), "hub")


def set_dir(d):
    """Sets the cache folder."""
    global _hub_dir
    _hub_dir = os.path.expanduser(d)


def _entries(repo_or_dir, source):
    """Imports hubconf.py and returns the module. If source="local", repo_or_dir is the folder that contains hubconf.py. If source="github",
    repo_or_dir is a repository, and hubconf.py is in its cache folder."""
    if source not in ("github", "local"):
        raise ValueError(f'Unknown source: "{source}". Allowed values: "github" | "local".')
    folder = repo_or_dir if source == "local" else _cached(repo_or_dir)
    path = os.path.join(folder, "hubconf.py")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, folder)  # hubconf.py may import modules from its folder
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    missing = [name for name in getattr(module, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"Missing dependencies: {', '.join(missing)}")
    return module


def _cached(repo):
    """Returns the cache folder of the repository owner/name[:ref]. NotImplementedError: the repository is not in the cache,
    and nothing is downloaded."""
    name, _, ref = repo.partition(":")
    beginning = name.replace("/", "_") + "_"
    found = sorted(entry for entry in (os.listdir(get_dir()) if os.path.isdir(get_dir()) else ()) if entry.startswith(beginning + ref))
    if not found:
        raise NotImplementedError(f"hub: nothing is downloaded, and '{repo}' is not in {get_dir()}; clone it and use source='local'")
    return os.path.join(get_dir(), found[0])


def _entry(module, name):
    if not isinstance(name, str):
        raise ValueError("Invalid input: model should be a string of function name")
    function = getattr(module, name, None)
    if not callable(function):
        raise RuntimeError(f"Cannot find callable {name} in hubconf")
    return function


def list(github, force_reload=False, skip_validation=False, trust_repo="check", verbose=True, *, source=None):
    """Returns the list of public function names in the hubconf.py of a folder, or of a repository in the cache."""
    module = _entries(github, source or ("local" if os.path.isdir(github) else "github"))
    return [name for name in dir(module) if callable(getattr(module, name)) and not name.startswith("_")]


def help(github, model, force_reload=False, skip_validation=False, trust_repo="check", *, source=None):
    """Returns the docstring of the function `model` in the hubconf.py of a folder, or of a repository in the cache."""
    return _entry(_entries(github, source or ("local" if os.path.isdir(github) else "github")), model).__doc__


def load(repo_or_dir, model, *args, source="github", trust_repo="check", force_reload=False, verbose=True, skip_validation=False, **kwargs):
    """Calls the function `model` with `args` and `kwargs`, and returns its result. The function is defined in the hubconf.py of a folder
    (source="local") or of a repository in the cache.

    NotImplementedError: the repository would have to be downloaded. RuntimeError: there is no such function.
    """
    return _entry(_entries(repo_or_dir, source.lower()), model)(*args, **kwargs)


def download_url_to_file(url, dst, hash_prefix=None, progress=True):
    """Raises NotImplementedError, because nothing is downloaded."""
    raise NotImplementedError(f"hub: nothing is downloaded; get {url} by other means and put it at {dst}")


def load_state_dict_from_url(url, model_dir=None, map_location=None, progress=True, check_hash=False, file_name=None, weights_only=False):
    """Loads a file from model_dir (by default get_dir()/checkpoints) with gradus.load and returns the loaded object. The file name is file_name, by
    default the last part of `url`. Raises NotImplementedError if the file does not exist, because nothing is downloaded."""
    import gradus

    folder = os.path.join(get_dir(), "checkpoints") if model_dir is None else model_dir
    path = os.path.join(folder, file_name or os.path.basename(urlparse(url).path))
    if not os.path.exists(path):
        download_url_to_file(url, path)
    return gradus.load(path, map_location=map_location, weights_only=weights_only)
