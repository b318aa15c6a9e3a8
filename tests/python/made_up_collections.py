"""Small collections for a server to load."""
import array
import random


def npy_header(row_count, dim):
    """The first bytes of a .npy file of fp32 rows."""
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({row_count}, {dim}), }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


def write_collection(folder, row_count, dim, seed):
    """A collection whose ids are its row numbers. Its rows repeat after the first 1,000."""
    folder.mkdir(parents=True)
    numbers = random.Random(seed)
    distinct = min(row_count, 1_000)
    rows = array.array("f", (numbers.uniform(-1, 1) for _ in range(distinct * dim))).tobytes()
    with open(folder / "vectors.npy", "wb") as file:
        file.write(npy_header(row_count, dim))
        for _ in range(row_count // distinct):
            file.write(rows)
