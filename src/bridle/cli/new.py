"""The commands `bridle new policy` and `bridle new problem`: a file that works as it is, and a test of it."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from keyword import iskeyword
from pathlib import Path
from typing import Annotated

import typer

from bridle import storage
from bridle.core import InputError

app = typer.Typer(no_args_is_help=True, help="Start a policy or a problem of your own. The file that you get works as it is.")

LONGEST = 20

NameArgument = Annotated[str, typer.Argument(help="What it is called: small letters, digits and _; the file is NAME.py.")]
FolderOption = Annotated[str, typer.Option(metavar="DIR", help="The folder for the files.")]


@app.command()
def policy(name: NameArgument, out: FolderOption = ".") -> None:
    """Write NAME.py, a policy that can be compared as it is, and test_NAME.py, its test. No file is overwritten."""
    from bridle import policies

    if name in policies.names():
        raise InputError(f"NAME must be new, and {name} is a registered policy")
    file, test = write("policy", name, Path(out))
    typer.echo(f"wrote {file} and {test}")
    typer.echo(f"compare it:  bridle compare halfspaces --policies anytime,{_typed(file)}")
    typer.echo(f"test it:     pytest {test}")


@app.command()
def problem(name: NameArgument, out: FolderOption = ".") -> None:
    """Write NAME.py, a problem that can be played as it is, and test_NAME.py, its test. No file is overwritten."""
    from bridle.problems import problem_names

    if name in problem_names():
        raise InputError(f"NAME must be new, and {name} is a registered problem")
    file, test = write("problem", name, Path(out))
    typer.echo(f"wrote {file} and {test}")
    typer.echo(f"play it:   bridle play {_typed(file)} --policy anytime")
    typer.echo(f"test it:   pytest {test}")


def write(kind: str, name: str, folder: Path) -> tuple[Path, Path]:
    """Write the template of this kind and its test under a name; both files, or none."""
    templates = Path(__file__).parent / "templates"
    sources = [(templates / f"{stem}.txt").read_text(encoding="utf-8") for stem in (kind, f"test_{kind}")]
    if not folder.is_dir():
        raise InputError(f"--out must name a folder that exists, not {str(folder)!r}")
    files = folder / f"{name}.py", folder / f"test_{name}.py"
    _check_name(name, sources[0])
    for file in files:
        if file.exists():
            raise InputError(f"{file} exists already, and is not overwritten")
    if find_spec(name) is not None:
        raise InputError(f"NAME must not be that of a module that Python finds already, as {name} is")
    for file, text in zip(files, sources, strict=True):
        with storage.replacing(file) as out:
            out.write(_filled(text, name).encode())
    return files


def _check_name(name: str, template: str) -> None:
    """Refuse a name that is none for a Python file, or that the template has for something else."""
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or iskeyword(name) or len(name) > LONGEST:
        raise InputError(
            f"NAME must be small letters, digits and _, begin with a letter, be no word of Python and have at most {LONGEST} characters, "
            f"not {name!r}"
        )
    taken = _words(_filled(template, "placeholder"))
    if name in taken or _class(name) in taken:
        raise InputError(f"NAME must be another: the file has something else that is called {name if name in taken else _class(name)}")


def _words(source: str) -> set[str]:
    """Every name that a source uses."""
    nodes = list(ast.walk(ast.parse(source)))
    imported = {alias.asname or alias.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
    used = {node.id for node in nodes if isinstance(node, ast.Name)} | {node.arg for node in nodes if isinstance(node, ast.arg)}
    defined = {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    return imported | used | defined


def _filled(template: str, name: str) -> str:
    return template.replace("@name@", name).replace("@Class@", _class(name))


def _class(name: str) -> str:
    """A name as that of a class: my_policy is MyPolicy."""
    return "".join(part.capitalize() for part in name.split("_"))


def _typed(file: Path) -> str:
    """A file as it is typed for a policy or a problem."""
    return str(file) if file.parent.parts else f"./{file}"
