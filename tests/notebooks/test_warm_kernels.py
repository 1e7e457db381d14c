"""Kernels that are forks begin as kernels of their own do."""

import json
import os
import signal
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from jupyter_client.provisioning import KernelProvisionerFactory

import minigpt.data  # noqa: F401
from minigpt.course import warm_kernels

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has them")


@pytest.mark.parametrize("count, name", [(3, "local-provisioner"), (4, "warm")])
def test_only_for_several_notebooks_kernels_are_forks(monkeypatch, count, name):
    factory = KernelProvisionerFactory.instance()
    monkeypatch.setattr(factory, "default_provisioner_name", "local-provisioner")
    monkeypatch.setattr(factory, "provisioners", {**factory.provisioners})
    paths = [Path(f"{n}.ipynb") for n in range(count)]
    items = [SimpleNamespace(path=path) for path in [*paths, *paths, Path("a.py")]]
    warm_kernels.pytest_collection_modifyitems(items)
    assert factory.default_provisioner_name == name
    entry = factory.provisioners.get("warm")
    assert entry is None or entry.load() is warm_kernels.Fork


def test_a_fork_has_the_place_of_its_notebook_and_nothing_of_the_package(tmp_path):
    path = sys.path[1:]
    child = os.fork()
    if child == 0:
        try:
            warm_kernels.become(["name", "-f", "file"], {"MINE": "1"}, str(tmp_path))
            seen = [sys.argv, dict(os.environ), sys.path, os.getpid() == os.getpgrp()]
            seen += [any(name.startswith("minigpt") for name in sys.modules)]
            seen += [signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL]
            Path("seen.json").write_text(json.dumps(seen), encoding="utf-8")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    seen = json.loads((tmp_path / "seen.json").read_text(encoding="utf-8"))
    given = {"MINE": "1", "JPY_PARENT_PID": str(os.getpid())}
    assert seen == [["name", "-f", "file"], given, path, True, False, True]
