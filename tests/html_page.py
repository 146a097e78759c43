"""A page as a browser's parser sees it, for tests: elements, texts, addresses."""

from __future__ import annotations

from collections.abc import Iterator
from html.parser import HTMLParser

VOID = frozenset("meta link br img input hr".split())


class Node:
    """One element with its attributes, text and children."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag, self.attributes = tag, attributes
        self.children: list[Node | str] = []

    def __getitem__(self, name: str) -> str:
        return self.attributes[name]

    def get(self, name: str) -> str:
        return self.attributes.get(name, "")

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str = "", *classes: str) -> Iterator[Node]:
        """Every element below with this tag and these classes, in order."""
        for child in self.children:
            if isinstance(child, Node):
                if (not tag or child.tag == tag) and set(classes) <= set(child.get("class").split()):
                    yield child
                yield from child.all(tag, *classes)

    def by_id(self, id: str) -> Node:
        (found,) = [node for node in self.all() if node.get("id") == id]
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("", {})
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        node = self.open.pop()
        assert node.tag == tag, f"<{node.tag}> is closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def read_page(text: str) -> Node:
    """The document; unbalanced elements fail."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert reader.open == [reader.root], [node.tag for node in reader.open]
    return reader.root
