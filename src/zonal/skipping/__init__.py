"""Which files a predicate needs, decided on bounds."""
