"""What the workflow publishes."""

import os
import shutil
import subprocess
import textwrap

from syllabus import ROOT


def test_the_workflow_pushes_what_was_built_to_two_branches(tmp_path):
    workflow = ROOT / ".github" / "workflows" / "publish.yml"
    step = workflow.read_text("utf-8").partition("name: Push each")[2]
    script = textwrap.dedent(step.partition("run: |\n")[2].partition("      - name")[0])
    for name in ("book", "colab"):
        (tmp_path / "build" / name).mkdir(parents=True)
        (tmp_path / "build" / name / f"{name}.txt").write_text("built")
    remote = str(tmp_path / "remote.git")
    subprocess.run(["git", "init", "--quiet", "--bare", remote], check=True)
    told = {"GITHUB_WORKSPACE": str(tmp_path), "REMOTE": remote, "GITHUB_SHA": "abc"}
    for _ in range(2):  # the second time over the first
        subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=tmp_path,
            env=os.environ | told,
            check=True,
        )
        for name in ("book", "colab"):
            shutil.rmtree(tmp_path / "build" / name / ".git")
    for branch, name in (("gh-pages", "book"), ("colab", "colab")):
        command = ["git", "-C", remote, "ls-tree", "--name-only", branch]
        files = subprocess.run(command, capture_output=True, text=True, check=True)
        assert f"{name}.txt" in files.stdout.split()
