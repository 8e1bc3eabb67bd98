"""One page for the person who decides: what a policy saves, how sure that is, and what is next.

`inputs` is what a page is made of, `sections` makes its parts, `pictures` its figures, `page` puts
them together, `style` is how it looks, `writing` puts it on disk.
"""

from forewise.report.writing import report

__all__ = ["report"]
