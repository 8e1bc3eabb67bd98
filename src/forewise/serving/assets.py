"""The page's files, as `make studio` built them: read once, sent as they are.

What the page may do is said by its Content-Security-Policy: scripts, styles and requests of this
service alone, nothing inline but one style sheet of the charts, which is known by its hash.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files

from fastapi.responses import Response

#: The style that Observable Plot puts into every chart; it changes with its version.
_CHART_STYLE = "sha256-jSYQUrW7J0b3jPqhZP9C2Xh1PyJKHKXd4s0fpGGKrww="
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' '{_CHART_STYLE}'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
_KINDS = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_BUILT = "studio"  # beside this module


@dataclass(frozen=True)
class Asset:
    """A file of the page, plain and compressed."""

    plain: bytes
    packed: bytes
    headers: Mapping[str, str]

    @classmethod
    def of(cls, name: str, content: bytes) -> Asset:
        """A file by its name; names of scripts and styles have a hash of what is in them."""
        named_by_content = name.endswith((".js", ".css"))
        headers = {
            "Content-Type": _KINDS[name.rpartition(".")[2]],
            "Cache-Control": "public, max-age=31536000, immutable" if named_by_content
            else "no-cache",
            "Content-Security-Policy": POLICY,
            "Referrer-Policy": "no-referrer",
            "Vary": "Accept-Encoding",
        }  # fmt: skip
        return cls(content, gzip.compress(content, mtime=0), headers)

    def response(self, packed: bool) -> Response:
        """The file, for who reads gzip or not."""
        if packed:
            return Response(self.packed, headers={**self.headers, "Content-Encoding": "gzip"})
        return Response(self.plain, headers=dict(self.headers))


def assets() -> dict[str, Asset]:
    """Every file of the page by its path; `index.html` is /."""
    found = {}
    for file in files("forewise.serving").joinpath(_BUILT).iterdir():
        name = file.name
        if name.rpartition(".")[2] in _KINDS:
            path = "/" if name == "index.html" else f"/studio/{name}"
            found[path] = Asset.of(name, file.read_bytes())
    return found
