"""The codes behind the keys of curves, bit by bit with Python's integers: the inverse of the encoders."""


def as_integers(words, low_bits=64):
    """Join the words of each key; `low_bits` is how many of its bits the last word holds."""
    return [
        sum(int(word) << low_bits * place for place, word in enumerate(row[::-1])) for row in zip(*words, strict=True)
    ]


def decode(kind, words, columns, bits):
    """Return the codes of each row: `decode(kind, encode(kind, codes, bits), len(codes), bits)` are its codes."""
    if kind == "linear":
        mask = 2**bits - 1
        return [
            tuple(key >> bits * place & mask for place in reversed(range(columns)))
            for key in as_integers(words, low_bits=64)
        ]
    keys = as_integers(words, low_bits=64 // columns * columns)
    codes = [[_every(key, columns, place) for place in reversed(range(columns))] for key in keys]
    return [tuple(_axes(each, bits) if kind == "hilbert" else each) for each in codes]


def _every(key, columns, first):
    """Take every columns-th bit of a key, from bit `first` on."""
    return int(bin(key)[2:][::-1][first::columns][::-1] or "0", 2)


def _axes(transposed, bits):
    """Undo the transposed Hilbert index (Skilling 2004): each level in turn, from the lowest bits to the highest."""
    axes = list(transposed)
    if len(axes) == 1:
        return axes
    inverted = axes[-1] >> 1
    for position in range(len(axes) - 1, 0, -1):
        axes[position] ^= axes[position - 1]
    axes[0] ^= inverted
    for bit in range(1, bits):
        low = 2**bit - 1
        for position in reversed(range(len(axes))):
            if axes[position] >> bit & 1:
                axes[0] ^= low
            else:
                swap = (axes[0] ^ axes[position]) & low
                axes[0] ^= swap
                axes[position] ^= swap
    return axes
