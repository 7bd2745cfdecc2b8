"""How objects show themselves: in a line of text, as a small drawing on a page, as a figure for a paper."""

from bridle.showing.brief import LISTED, call, count, number, short, shown, type_name

__all__ = ["LISTED", "call", "count", "number", "short", "shown", "type_name"]
