"""Lesson 10: the checkpoint of a model that no worker holds as a whole: a folder.

    run.pt          what is small, as in any checkpoint, and the name of
    step-1200/      the tensors, in torch.distributed.checkpoint's format

Each worker writes its share. run.pt is replaced last, so that the folder is a whole
checkpoint at every moment; it holds the SHA-256 of each other file, by which damage
is noticed.
"""

import pickle
import shutil
import warnings
from hashlib import sha256

import torch
import torch.distributed.checkpoint as dcp

from minigpt.checkpoint import FOLDER_FILE
from minigpt.sealed import write_sealed

CONTENTS = {
    *(
        f"torch.distributed.checkpoint.metadata.{name}"
        for name in "Metadata MetadataIndex StorageMeta TensorStorageMetadata "
        "ChunkStorageMetadata TensorProperties _MEM_FORMAT_ENCODING".split()
    ),
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.Size",
    "torch.serialization._get_layout",
    "pathlib.PosixPath",
    "pathlib.WindowsPath",
    "pathlib._local.PosixPath",
    "pathlib._local.WindowsPath",
}


def write(folder, content, workers):
    """Write a checkpoint's content, the tensors of model and optimizer apart.

    All workers call this, each with its shares. Raises OSError on all of them if
    one could not write; the checkpoint before is then still there.
    """
    tensors, name = {}, f"step-{content['step']}"
    while workers.sum((folder / name).exists()):  # it may be the one to be replaced
        name += "-again"
    small = dict(content, tensors=name)
    for part in ("model", "optimizer"):
        small[part] = _take_out(content[part], tensors, part)
    place = folder / name

    def finish():
        small["seals"] = _seals(place)
        write_sealed(folder / FOLDER_FILE, small)
        for old in folder.glob("step-*"):
            if old != place:
                shutil.rmtree(old)

    try:
        dcp.save(tensors, storage_writer=dcp.FileSystemWriter(place, sync_files=True))
    except dcp.CheckpointException as error:  # of all workers, and no Exception
        raise OSError(str(next(iter(error.failures.values()))[0])) from None
    workers.first(finish)


def read(folder, small):
    """The content that `write` was given, each tensor whole and on the CPU.

    Raises ValueError if the tensors are not those that were written.
    """
    try:
        return _read(folder, small)
    except (Exception, dcp.CheckpointException):
        raise ValueError(
            f"{folder} is damaged or not whole, or another program's: its tensors are "
            "not those that its run.pt names. Copy the whole folder again, or train "
            "again."
        ) from None


def _read(folder, small):
    place = folder / small["tensors"]
    if _seals(place) != small["seals"]:
        raise ValueError("a file is not as it was written")
    reader = _Reader(place)
    tensors = {
        name: torch.empty(entry.size, dtype=entry.properties.dtype)
        for name, entry in reader.read_metadata().state_dict_metadata.items()
    }
    with warnings.catch_warnings():  # one process reads all: that is meant
        warnings.filterwarnings("ignore", "torch.distributed is disabled")
        dcp.load(tensors, storage_reader=reader, no_dist=True)
    parts = {part: _put_back(small[part], tensors) for part in ("model", "optimizer")}
    return {**small, **parts}


def _seals(place):
    """The SHA-256 of each file in a folder, by its name."""
    return {file.name: _seal(file) for file in sorted(place.iterdir())}


def _seal(path):
    digest = sha256()
    with open(path, "rb") as file:  # a shard may be larger than what memory is left
        while piece := file.read(2**20):
            digest.update(piece)
    return digest.hexdigest()


def _take_out(value, tensors, name):
    """`value` with a name in the place of each tensor, which goes into `tensors`."""
    if isinstance(value, torch.Tensor):
        tensors[name] = value
        return {"tensor": name}
    if isinstance(value, dict):
        return {k: _take_out(v, tensors, f"{name}.{k}") for k, v in value.items()}
    if isinstance(value, list):
        return [_take_out(v, tensors, f"{name}.{i}") for i, v in enumerate(value)]
    return value


def _put_back(value, tensors):
    if isinstance(value, dict):
        if set(value) == {"tensor"}:
            return tensors[value["tensor"]]
        return {k: _put_back(v, tensors) for k, v in value.items()}
    if isinstance(value, list):
        return [_put_back(v, tensors) for v in value]
    return value


class _Reader(dcp.FileSystemReader):
    """torch's, but its table of contents, a pickle, may build nothing but that."""

    def read_metadata(self, *args, **kwargs):
        with open(self.path / ".metadata", "rb") as file:
            return _Metadata(file).load()


class _Metadata(pickle.Unpickler):
    def find_class(self, module, name):
        dtype = module == "torch" and isinstance(getattr(torch, name), torch.dtype)
        if dtype or f"{module}.{name}" in CONTENTS:
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} belongs in no checkpoint")
