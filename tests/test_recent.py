"""The bound on compiled programs."""

from __future__ import annotations

from multiop import _recent


def test_what_was_used_last_is_kept():
    recent = _recent.Recent(2)
    for key in "ab":
        recent.put(key, key)
    assert recent.get("a") == "a"
    recent.put("c", "c")
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == ("a", None, "c")
