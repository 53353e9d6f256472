"""Reads a page in tests, as a browser does."""

from html.parser import HTMLParser


class Page(HTMLParser):
    """Reads a page as a browser does: its tags, attributes and text, and checks that every tag is closed in order."""

    VOID = ("meta",)

    def __init__(self, page):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.words, self.open = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *each) for each in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" not in self.open:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(self.words)
