"""Sizes, prices and times in sentences, rounded."""


def size_text(size: float) -> str:
    """Print a size for people.

    >>> size_text(17), size_text(1500), size_text(2_340_000)
    ('17 B', '1.5 KB', '2.3 MB')
    """
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} B" if unit == "B" else f"{size:,.1f} {unit}"
        size /= 1000
    return f"{size:,.1f} TB"


def price_text(price: float) -> str:
    """Print a price in dollars and cents.

    >>> price_text(1234.5), price_text(0.00123), price_text(0)
    ('$1,234.50', 'less than $0.01', '$0.00')
    """
    return "less than $0.01" if 0 < price < 0.01 else f"${price:,.2f}"


def days_text(days: float) -> str:
    """Print a number of days.

    >>> days_text(0.2), days_text(1.2), days_text(17.4)
    ('less than a day', '1.2 days', '17 days')
    """
    if days < 1:
        return "less than a day"
    return f"{days:,.1f} days" if days < 10 else f"{days:,.0f} days"
