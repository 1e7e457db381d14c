"""Kernels for nbval that have imported torch already.

Importing torch, matplotlib and IPython, and making the first optimizer, takes longer
than most notebooks. So where several notebooks are run, one process imports all that
once, and each kernel is a fork of it. The kernel imports minigpt itself. This is for
Linux only: macOS doesn't let such a process be forked safely, and Windows has no fork.

pyproject.toml loads this plugin of pytest.
"""

import functools
import json
import os
import signal
import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

from jupyter_client.provisioning import KernelProvisionerFactory, LocalProvisioner

NAME = "warm"
SEVERAL = 4  # notebooks; for fewer, it's not worth it
INLINE = "module://matplotlib_inline.backend_inline"  # a kernel's own choice


def pytest_collection_modifyitems(items: list) -> None:
    """Let the kernels of this run be forks, if there are several notebooks."""
    notebooks = {item.path for item in items if item.path.suffix == ".ipynb"}
    if sys.platform == "linux" and len(notebooks) >= SEVERAL:
        factory = KernelProvisionerFactory.instance()
        place = f"{__name__}:{Fork.__name__}"
        factory.provisioners[NAME] = EntryPoint(NAME, place, factory.GROUP_NAME)
        factory.default_provisioner_name = NAME


class Fork(LocalProvisioner):
    """Starts a kernel as a fork, and ends it like any other."""

    async def launch_kernel(self, cmd: list[str], **how: Any) -> Any:
        arguments = cmd[cmd.index("ipykernel_launcher") :]
        cwd = str(how.get("cwd") or os.getcwd())
        self.process = Forked({"argv": arguments, "env": how["env"], "cwd": cwd})
        self.pid = self.pgid = self.process.pid
        self.cwd = cwd
        return self.connection_info


class Forked:
    """What LocalProvisioner needs of a subprocess.Popen, for the child of another."""

    stdin = stdout = stderr = None

    def __init__(self, order: dict) -> None:
        process = server()
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps(order) + "\n")
        process.stdin.flush()
        self.pid = int(process.stdout.readline())

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    wait = poll  # it's called after the end

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)


@functools.cache
def server() -> subprocess.Popen:
    """The process that forks. It ends when its standard input does."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__],
        env={**os.environ, "MPLBACKEND": INLINE},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )


def serve() -> None:
    """Fork for each line of standard input, and print the child's process number."""
    import ipykernel.kernelapp
    import matplotlib.backends.backend_agg
    import matplotlib.figure  # noqa: F401
    import torch._dynamo  # what the first optimizer imports  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # children leave nothing behind
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            become(**json.loads(line))
            ipykernel.kernelapp.launch_new_instance()
            return
        print(child, flush=True)


def become(argv: list[str], env: dict[str, str], cwd: str) -> None:
    """Be as a kernel of its own is when it starts, but for what has been imported."""
    os.setpgrp()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(null, stream)
    os.environ.clear()
    os.environ.update(env, JPY_PARENT_PID=str(os.getppid()))  # it ends with the server
    os.chdir(cwd)
    sys.argv = argv
    del sys.path[0]  # the folder where the server started
    for name in [name for name in sys.modules if name.partition(".")[0] == "minigpt"]:
        del sys.modules[name]


if __name__ == "__main__":
    serve()
