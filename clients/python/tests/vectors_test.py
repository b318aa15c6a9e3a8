#!/usr/bin/python3
"""What people hold as vectors, and the bytes that a request gets of them.

usage: vectors_test.py PACKAGE_DIR
"""
import sys
import unittest

sys.path.insert(0, sys.argv.pop(1))

import numpy as np
from simile_search import InvalidVectors, messages, vectors

ROWS = np.arange(12, dtype="f4").reshape(3, 4) / 8 - 0.5


class FrameColumn:
    """As a column of pandas holds vectors."""

    def to_numpy(self):
        column = np.empty(len(ROWS), object)
        column[:] = list(ROWS)
        return column


class Tensor:
    """As torch shows one to NumPy."""
    dtype = "torch.float32"

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values

    def __len__(self):
        return len(self.values)

    def __init__(self, values=ROWS):
        self.values = values


class MatrixTest(unittest.TestCase):
    def test_takes_the_same_numbers_in_every_form(self):
        wide = np.zeros((6, 8), "f4")
        wide[::2, ::2] = ROWS
        forms = {
            "array": ROWS, "float64": ROWS.astype("f8"), "big-endian": ROWS.astype(">f4"), "big-endian float64": ROWS.astype(">f8"),
            "Fortran order": np.asfortranarray(ROWS), "strided": wide[::2, ::2], "reversed": ROWS[::-1][::-1],
            "read-only": np.frombuffer(ROWS.tobytes(), "f4").reshape(3, 4), "longdouble": ROWS.astype(np.longdouble),
            "lists": ROWS.tolist(), "tuples": tuple(map(tuple, ROWS.tolist())), "list of arrays": list(ROWS),
            "iterator": iter(ROWS), "generator": (row.tolist() for row in ROWS), "column": FrameColumn(), "tensor": Tensor(),
            "objects": ROWS.astype(object), "tensors": [Tensor(row) for row in ROWS], "unmasked": np.ma.array(ROWS),
        }
        for name, form in forms.items():
            with self.subTest(name):
                matrix = vectors.matrix_of(form)
                self.assertEqual((matrix.dtype.str, matrix.shape, matrix.flags.c_contiguous), ("<f4", (3, 4), True))
                np.testing.assert_array_equal(matrix, ROWS)

    def test_takes_one_vector_integers_and_none(self):
        np.testing.assert_array_equal(vectors.matrix_of(ROWS[1]), ROWS[1:2])
        np.testing.assert_array_equal(vectors.matrix_of(ROWS[1].tolist()), ROWS[1:2])
        np.testing.assert_array_equal(vectors.matrix_of(np.array([[1, -2]], "i1")), [[1, -2]])
        np.testing.assert_array_equal(vectors.matrix_of([[True, False]]), [[1, 0]])
        for empty in ([], np.zeros((0, 4), "f4"), iter(()), np.array([], object)):
            self.assertEqual(len(vectors.matrix_of(empty)), 0)

    def test_keeps_float16(self):
        matrix = vectors.matrix_of(ROWS.astype(">f2"))
        self.assertEqual(matrix.dtype.str, "<f2")
        np.testing.assert_array_equal(matrix, ROWS)

    def test_says_what_cannot_be_sent(self):
        bad = ROWS.copy()
        bad[1, 2] = np.nan
        for form, text in ((np.zeros((2, 3, 4)), r"shape \(2, 3, 4\)"), ([[1, 2], [3]], r"rows of shapes \(1,\) to \(2,\)"),
                           (["a", "b"], "row 0 is 'a', and no vector"), (bad, "row 1 holds nan at column 2"), ([[1e300]], "row 0 holds 1e"),
                           (np.array([[1j]]), "dtype complex128"), ([[None, 1.0]], "row 0 holds values that are no numbers"), ([[1.0], None], "row 1 is None"),
                           (np.ma.array([[1.0, 999.0]], mask=[[0, 1]]), "masked"), ([np.ma.array([1.0, 2.0], mask=[1, 0])], "row 0 hold masked"),
                           (bytearray(b"abcd"), "type bytearray"), ("text", "type str"), (np.float32(3), r"shape \(\)"), (3, "type int"),
                           (np.zeros((2, 0)), r"shape \(2, 0\)"), ([["x", 1.0]], "dtype <U")):
            with self.subTest(text), self.assertRaisesRegex(InvalidVectors, text):
                vectors.matrix_of(form)


class QueriesTest(unittest.TestCase):
    def test_are_what_protobuf_writes(self):
        for dtype, number in (("<f4", 1), ("<f2", 2)):
            for count, dim in ((0, 3), (1, 1), (2, 31), (3, 32), (5, 100), (2, 384), (1, 4096)):
                matrix = np.random.default_rng(dim).standard_normal((count, dim)).astype(dtype)
                expected = messages.SearchRequest()
                for row in matrix:
                    vector = expected.queries.add().packed_vector
                    vector.format, vector.data = number, row.tobytes()
                self.assertEqual(vectors.queries_of(matrix), expected.SerializeToString(), (dtype, count, dim))


if __name__ == "__main__":
    unittest.main(verbosity=2)
