"""Names that would be markup, move a cursor or turn text around, if they were not escaped."""

HOSTILE = [
    "</script><script>alert(1)</script>",
    "'\"><img src=x onerror=alert(1)>",
    "</title></style><b>",
    "\u202egnp.exe\u2066",
    "\x1b[31m[red]name[/red]\x00",
    "x" * 10_000,
    "half \udc80",
]
