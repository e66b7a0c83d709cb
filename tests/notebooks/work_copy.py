"""A copy of the repository to try its commands on, and how to start them."""

import os
import pathlib
import shutil
import subprocess
import sys

import execute
from notebook_files import ROOT


def run(*command, cwd=ROOT, **changed) -> subprocess.CompletedProcess:
    """A command as a reader would start it, not as a part of the `make` that started the tests."""
    outer = ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "MAKEOVERRIDES")
    environment = {name: value for name, value in execute.environment().items() if name not in outer} | changed
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )


def git(*arguments, cwd) -> str:
    identity = {f"GIT_{who}_{what}": "test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    outcome = run("git", "-c", "init.defaultBranch=main", *arguments, cwd=cwd, GIT_CONFIG_GLOBAL=os.devnull, **identity)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def work_copy(folder: pathlib.Path) -> pathlib.Path:
    """A repository of its own with the files of this one as they are now, committed or not."""
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", cwd=ROOT).splitlines()
    for name in listed:
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    git("init", "-q", cwd=folder)
    git("add", "-A", cwd=folder)
    git("commit", "-q", "-m", "as it is", cwd=folder)
    return folder


def published_copy(copy: pathlib.Path, bare: pathlib.Path, folder: pathlib.Path, branch: str = "main") -> pathlib.Path:
    """A working copy whose notebooks know a bare repository that can be cloned, and a branch of it."""
    bare, work = bare / "book.git", folder / "work"
    git("clone", "-q", "--bare", copy, bare, cwd=copy)
    git("clone", "-q", copy, work, cwd=copy)
    if branch != "main":
        git("branch", branch, cwd=bare)
    named = f"file://{bare}" if branch == "main" else f"file://{bare}/tree/{branch}"
    outcome = run("make", "repository", f"URL={named}", f"PYTHON={sys.executable}", cwd=work)
    assert outcome.returncode == 0, outcome.stderr
    return work
