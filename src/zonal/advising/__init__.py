"""Advice on a table: which layouts would bring what, at which cost, and what experience says of them."""
