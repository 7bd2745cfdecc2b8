"""What Sphinx writes that leads nowhere, or that a screen reader cannot follow, put right."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

BACK = re.compile(r'<a class="viewcode-back" href="([^"#]+)#([^"]+)">\[docs\]</a>')
LONG_SIGNATURE = re.compile(r"<dl>\n(?:<dd>.*?</dd>\n)+</dl>", flags=re.S)
LIST = re.compile(r"<dd>(.*?)</dd>\n", flags=re.S)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page."""
    return frozenset(re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8"))) if page.exists() else frozenset()


def as_lines(found: re.Match[str]) -> str:
    """The parameters of a long signature, one a line."""
    return f'<span class="sig-lines">{"".join(f"<span>{each}</span>" for each in LIST.findall(found.group(0)))}</span>'


def tidy(app: Sphinx, trouble: Exception | None) -> None:
    """Long signatures as lines instead of lists without terms; no links back from source to where a name is not documented."""
    if trouble is not None or app.builder.name != "html":
        return
    for path in (Path(app.outdir) / "reference" / "api").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        path.write_text(LONG_SIGNATURE.sub(as_lines, text), encoding="utf-8")
    for path in (Path(app.outdir) / "_modules").rglob("*.html"):
        text = path.read_text(encoding="utf-8")

        def kept(found: re.Match[str], folder: Path = path.parent) -> str:
            return found.group(0) if found.group(2) in anchors((folder / found.group(1)).resolve()) else ""

        pruned = BACK.sub(kept, text)
        if pruned != text:
            path.write_text(pruned, encoding="utf-8")


def flat_list(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: object) -> None:
    """The list of modules as one list: Sphinx nests lists in a way that screen readers cannot follow."""
    if page == "_modules/index":
        head, _, rest = context["body"].partition("<ul>")
        context["body"] = f"{head}<ul>{''.join(re.findall(r'<li>.*?</li>', rest, flags=re.S))}</ul>"


def aliases(
    app: Sphinx, what: str, name: str, thing: object, options: object, signature: str | None, returned: str | None
) -> tuple[str | None, str | None]:
    """Types by the names that the source gives them."""
    plain = [text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in (signature, returned)]
    return plain[0], plain[1]


def setup(app: Sphinx) -> None:
    """Register the hooks."""
    app.connect("autodoc-process-signature", aliases)
    app.connect("build-finished", tidy)
    app.connect("html-page-context", flat_list)
