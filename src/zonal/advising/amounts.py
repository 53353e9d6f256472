"""Print rounded prices and times for sentences."""


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
