"""How objects show themselves: in a line of text, as a table, as a small drawing on a page, as a figure for a paper."""

from bridle.showing.brief import LISTED, NumberStyle, call, count, later, listing, number, seed_range, short, shown, spread, type_name

__all__ = ["LISTED", "NumberStyle", "call", "count", "later", "listing", "number", "seed_range", "short", "shown", "spread", "type_name"]
