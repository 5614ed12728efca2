"""Makes the tensors that train.py starts from (--start) out of a packed head.

usage: unpack.py crates/foremind-router/data/route.fmadpt OUT.safetensors

The layout is that of docs/EMBEDDER.md, section "Adapters"; numbers were rounded to 16 bits a row when they were packed.
"""

import struct
import sys

import numpy as np
from safetensors.numpy import save_file

from minilm import WIDTH

ADAPTER_SECTION, TABLE_ENTRY, HEADER = 4, 52, 24
PARTS = ("query", "key", "value", "merge", "expand", "contract")


class Reader:
    """Reads little-endian values one after the other."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, layout):
        values = struct.unpack_from("<" + layout, self.data, self.at)
        self.at += struct.calcsize("<" + layout)
        return values

    def rows(self, count, numbers):
        """Rows of 16-bit numbers, each with its step."""
        out = np.zeros((count, numbers), np.float32)
        for row in out:
            (step,) = self.take("f")
            row[:] = np.frombuffer(self.data, "<i2", numbers, self.at) * step
            self.at += 2 * numbers
        return out


def section(data):
    """The bytes of the adapter section."""
    if data[:8] != b"fmadpt\r\n":
        raise SystemExit("not an adapter file")
    sections, name = struct.unpack_from("<HH", data, 10)
    for number in range(sections):
        kind, offset, length = struct.unpack_from("<IQQ", data, HEADER + name + TABLE_ENTRY * number)
        if kind == ADAPTER_SECTION:
            return data[offset : offset + length]
    raise SystemExit("no adapter section")


def tensors(data):
    reader, found = Reader(section(data)), {}
    _, deltas, heads, _ = reader.take("4H")
    for _ in range(deltas):
        layer, matrix, rank, _ = reader.take("4B")
        part = PARTS[matrix]
        inputs = 4 * WIDTH if part == "contract" else WIDTH
        outputs = 4 * WIDTH if part == "expand" else WIDTH
        found[f"delta.{layer}.{part}.a"] = reader.rows(rank, inputs)
        found[f"delta.{layer}.{part}.b"] = reader.rows(outputs, rank)
    for _ in range(heads):
        (length,) = reader.take("B")
        name = reader.take(f"{length}s")[0].decode()
        _, pooling, maps = reader.take("3B")
        if pooling == 1:
            found[f"head.{name}.pool"] = reader.rows(1, WIDTH)[0]
        inputs = WIDTH
        for number in range(maps):
            _, _, outputs = reader.take("BBH")
            found[f"head.{name}.{number}.weight"] = reader.rows(outputs, inputs)
            found[f"head.{name}.{number}.bias"] = reader.rows(1, outputs)[0]
            inputs = outputs
    return found


if __name__ == "__main__":
    packed, out = sys.argv[1:]
    with open(packed, "rb") as file:
        save_file(tensors(file.read()), out)
